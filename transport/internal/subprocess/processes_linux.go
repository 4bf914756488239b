package subprocess

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// EndWithThread makes the kernel end the process together with the starting thread, even when this process is killed.
func EndWithThread(command *exec.Cmd) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGTERM
}

// processesWith returns the processes of this machine with a command-line argument.
func processesWith(argument string) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, name := range names {
		line, err := os.ReadFile(name)
		if err != nil || !slices.Contains(strings.Split(string(line), "\x00"), argument) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
