//go:build !linux

package subprocess

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// EndWithThread does nothing: only Linux can. When this process is killed, the program runs until the next sweep.
func EndWithThread(*exec.Cmd) {}

// processesWith returns the processes of this machine with a command-line argument. The argument has no spaces.
func processesWith(argument string) (pids []int) {
	output, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output() //nolint:noctx // it ends by itself
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !slices.Contains(fields[1:], argument) {
			continue
		}
		if pid, err := strconv.Atoi(fields[0]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
