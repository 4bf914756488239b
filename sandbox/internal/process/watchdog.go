//go:build unix

package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// watchScript reads "add PID" and "del PID" lines until its standard input closes, then
// kills the remaining process groups and removes folder $1, if any. It retries the
// removal because dying processes may still be writing. (dash accepts a group's
// negative number only after "kill -s KILL --", not after "kill -9 --".)
const watchScript = `trap '' INT TERM HUP QUIT
pids=' '
while read -r verb pid; do
	case $verb in
	add) pids="$pids$pid " ;;
	del) pids="${pids%% $pid *} ${pids#* $pid }" ;;
	esac
done
for pid in $pids; do kill -s KILL -- "-$pid" 2>/dev/null; done
[ -n "$1" ] || exit 0
for try in 1 2 3 4 5 6 7 8 9 10; do
	rm -rf -- "$1" 2>/dev/null && exit 0
	sleep 0.2
done
`

type watchdog struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

func newWatchdog(dir string) (*watchdog, error) {
	cmd := exec.Command("/bin/sh", "-c", watchScript, "sandbox-watchdog", dir)
	// In its own session, without Ctrl-C and the terminal's SIGHUP.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = os.TempDir()
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start watchdog, which cleans up after a crash: %w", err)
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

func (w *watchdog) add(pid int) { w.send("add", pid) }
func (w *watchdog) del(pid int) { w.send("del", pid) }

// send ignores errors: without a watchdog, Close still cleans up.
func (w *watchdog) send(verb string, pid int) { _, _ = fmt.Fprintln(w.pipe, verb, pid) }

// close ends the watchdog and waits for it.
func (w *watchdog) close() {
	_ = w.pipe.Close()
	_ = w.cmd.Wait() // its exit code does not matter
}
