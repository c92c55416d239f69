//! The command that a recording is of: started stopped, followed to its end.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::processes;
use crate::recorder::PATIENCE;

/// A command that was started for the recording: a shell that stops itself, and becomes the command when it goes on.
pub(crate) struct Started {
    child: Option<Child>,
    pid: u32,
    status: Option<ExitStatus>,
}

impl Started {
    pub(crate) fn new(argv: &[String]) -> Result<Started, Error> {
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
                return Err(Error::Asked("the shell that is to start the command does not stop".to_string()));
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

    /// It is nobody's any more.
    pub(crate) fn leave(&mut self) {
        self.child = None;
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
