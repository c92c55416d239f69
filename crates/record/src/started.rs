//! The command that a recording is of: started stopped, followed to its end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::processes;

/// How long a command may take to stop, and to end, when it is asked to.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A command that was started for the recording: a shell that stops itself, and becomes the command when it goes on.
pub(crate) struct Started {
    child: Option<Child>,
    pid: u32,
    status: Option<ExitStatus>,
}

impl Started {
    /// Errors: the command is not a program that can run here.
    pub(crate) fn new(argv: &[String]) -> Result<Started, Error> {
        runnable(argv.first().map_or("", String::as_str))?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]).args(argv);
        let child = command.spawn().map_err(|source| Error::File {
            what: "cannot start",
            path: "/bin/sh".to_string(),
            source,
            help: "",
        })?;
        let pid = child.id();
        Ok(Started { child: Some(child), pid, status: None })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn wait_stopped(&mut self) -> Result<(), Error> {
        let since = Instant::now();
        while processes::state(self.pid) != Some('T') {
            if self.ended().is_some() || since.elapsed() > PATIENCE {
                return Err(Error::Asked(
                    "the shell that starts the command did not stop itself".to_string(),
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn signal(&self, signal: rustix::process::Signal) -> Result<(), Error> {
        let pid = rustix::process::Pid::from_raw(self.pid as i32).expect("a child has a number");
        rustix::process::kill_process(pid, signal).map_err(|error| {
            Error::Asked(format!("cannot signal the command, process {}: {error}", self.pid))
        })
    }

    pub(crate) fn go_on(&self) -> Result<(), Error> {
        self.signal(rustix::process::Signal::CONT)
    }

    pub(crate) fn terminate(&self) -> Result<(), Error> {
        self.signal(rustix::process::Signal::TERM)
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none()
            && let Some(child) = &mut self.child
        {
            self.status = child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Leaves the process running: dropping this value no longer ends it.
    pub(crate) fn leave(&mut self) {
        self.child = None;
    }
}

/// Looks whether the shell can become this program: otherwise what is recorded is the shell's own failure.
fn runnable(name: &str) -> Result<(), Error> {
    let cannot = |source: io::Error| Error::File {
        what: "cannot start",
        path: name.escape_debug().to_string(),
        source,
        help: "",
    };
    let error = |number: rustix::io::Errno| io::Error::from_raw_os_error(number.raw_os_error());
    let access = |path: &Path| -> io::Result<()> {
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).map_err(error)?;
        // A folder can be "executed", too.
        if path.is_dir() { Err(error(rustix::io::Errno::ACCESS)) } else { interpreter(path) }
    };
    if name.contains('/') {
        return access(Path::new(name)).map_err(cannot);
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|folder| folder.join(name));
    let mut why = error(rustix::io::Errno::NOENT);
    for path in found.filter(|path| path.exists()) {
        match access(&path) {
            Ok(()) => return Ok(()),
            Err(error) => why = error,
        }
    }
    Err(cannot(why))
}

/// Checks that the program of a script's first line, `#!/bin/sh`, exists.
fn interpreter(path: &Path) -> io::Result<()> {
    let mut first = Vec::new();
    // A program that may be run and not read is none that a shell interprets.
    let Ok(file) = File::open(path) else { return Ok(()) };
    BufReader::new(file.take(256)).read_until(b'\n', &mut first)?;
    let line = String::from_utf8_lossy(&first);
    let Some(program) = line.strip_prefix("#!").and_then(|rest| rest.split_whitespace().next()) else {
        return Ok(());
    };
    match Path::new(program).exists() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("its interpreter {} is missing", program.escape_debug()),
        )),
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.ended().is_none()
            && let Some(child) = &mut self.child
        {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "the command has ended".to_string(),
        (Some(code), _) => format!("the command has ended with exit code {code}"),
        (None, Some(signal)) => format!("the command was ended by signal {signal}"),
        (None, None) => "the command has ended".to_string(),
    }
}

/// The exit code that a shell has for a command.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.map_or(0, |code| u8::try_from(code).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str) -> String {
        runnable(name).unwrap_err().to_string()
    }

    #[test]
    fn exit_code_is_that_of_a_shell() {
        let code = |raw| exit_code(ExitStatus::from_raw(raw));
        assert_eq!([0, 3 << 8, 255 << 8, 15].map(code), [0, 3, 255, 128 + 15]);
    }

    #[test]
    fn command_that_cannot_run_is_refused_with_its_error() {
        assert!(runnable("sh").is_ok() && runnable("/bin/sh").is_ok());
        assert!(
            refused("/nosuch").starts_with("cannot start /nosuch: No such file"),
            "{}",
            refused("/nosuch")
        );
        assert!(refused("no-such-program").contains("No such file"), "{}", refused("no-such-program"));
        assert!(refused("/").contains("Permission denied"), "{}", refused("/"));
        assert!(refused("/etc/passwd").contains("Permission denied"), "{}", refused("/etc/passwd"));
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        std::fs::write(&script, "#!/nowhere/sh -e\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, mode).unwrap();
        let told = refused(script.to_str().unwrap());
        assert!(told.contains("its interpreter /nowhere/sh is missing"), "{told}");
    }
}
