//! Prints the names of all targets, a line each.

fn main() {
    for (name, _) in pageout_fuzz::targets() {
        println!("{name}");
    }
}
