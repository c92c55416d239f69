//! The miss-ratio curve in characters: good enough to see the knee.
//!
//! ```text
//!    0.83 |*..
//!         |   ...*...
//!         |          .......*.......
//!    0.47 |                         .......*
//!         +---------------------------------
//!          128 MiB                   512 MiB
//! ```

const WIDTH: usize = 60;
const HEIGHT: usize = 10;

/// Plots `points` (x, y), measured ones as `*` and the straight lines between them as `.`.
pub(super) fn plot(
    points: &[(f64, f64)],
    show_x: impl Fn(f64) -> String,
    show_y: impl Fn(f64) -> String,
) -> String {
    let mut points = points.to_vec();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(&(x_min, _)), Some(&(x_max, _))) = (points.first(), points.last()) else {
        return String::new();
    };
    let y_min = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let y_max = points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
    // Over more than a decade a linear axis has all but the largest size in its first columns.
    let is_log = x_min > 0.0 && x_max / x_min > 10.0;
    let along = |x: f64| if is_log { x.ln() } else { x };
    let column = |x: f64| scale(along(x), along(x_min), along(x_max), WIDTH - 1);
    let row = |y: f64| HEIGHT - 1 - scale(y, y_min, y_max, HEIGHT - 1);

    let mut grid = vec![vec![' '; WIDTH]; HEIGHT];
    for pair in points.windows(2) {
        let (from, to) = (column(pair[0].0), column(pair[1].0));
        for step in 0..=(to - from) {
            let part = step as f64 / (to - from).max(1) as f64;
            grid[row(pair[0].1 + (pair[1].1 - pair[0].1) * part)][from + step] = '.';
        }
    }
    for &(x, y) in &points {
        grid[row(y)][column(x)] = '*';
    }

    let (top, bottom) = (show_y(y_max), show_y(y_min));
    let margin = top.chars().count().max(bottom.chars().count());
    let mut text = String::new();
    for (index, line) in grid.iter().enumerate() {
        let mark = match index {
            0 => top.as_str(),
            _ if index == HEIGHT - 1 => bottom.as_str(),
            _ => "",
        };
        let line: String = line.iter().collect();
        text += &format!("  {mark:>margin$} |{}\n", line.trim_end());
    }
    let (left, right) = (show_x(x_min), show_x(x_max));
    let gap = WIDTH.saturating_sub(left.chars().count() + right.chars().count());
    let between = if is_log { "(logarithmic)" } else { "" };
    text += &format!("  {:margin$} +{}\n", "", "-".repeat(WIDTH));
    text += &format!("  {:margin$}  {left}{between:^gap$}{right}\n", "");
    text
}

/// Where `value` lies between `min` and `max`, as a step from 0 to `steps`; 0 when there is no between.
fn scale(value: f64, min: f64, max: f64, steps: usize) -> usize {
    if max <= min { 0 } else { ((value - min) / (max - min) * steps as f64).round() as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_points_are_marked_at_their_places() {
        let text = plot(&[(10.0, 0.5), (20.0, 0.25), (30.0, 0.0)], |x| format!("{x}"), |y| format!("{y:.2}"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), HEIGHT + 2);
        assert!(lines[0].starts_with("  0.50 |*"), "{text}");
        assert!(lines[HEIGHT - 1].starts_with("  0.00 |") && lines[HEIGHT - 1].ends_with('*'), "{text}");
        assert_eq!(text.matches('*').count(), 3);
        assert!(lines[HEIGHT + 1].trim_start().starts_with("10") && lines[HEIGHT + 1].ends_with("30"));
    }

    #[test]
    fn sizes_of_more_than_a_decade_stand_at_equal_factors() {
        let text = plot(&[(1.0, 2.0), (10.0, 1.0), (100.0, 0.0)], |x| format!("{x}"), |y| format!("{y}"));
        let at = text.lines().find_map(|line| line.strip_prefix("    |")?.find('*').filter(|&at| at > 0));
        assert_eq!(at, Some(WIDTH / 2), "{text}");
        assert!(text.lines().last().unwrap().contains(" (logarithmic) "), "{text}");
    }

    #[test]
    fn a_flat_curve_and_a_single_point_are_drawn_too() {
        let flat = plot(&[(1.0, 2.0), (2.0, 2.0)], |x| format!("{x}"), |y| format!("{y}"));
        assert_eq!(flat.matches('*').count(), 2);
        assert_eq!(plot(&[(1.0, 2.0)], |x| format!("{x}"), |y| format!("{y}")).matches('*').count(), 1);
    }
}
