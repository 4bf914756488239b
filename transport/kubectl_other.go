//go:build !linux

package transport

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// endWithThread does nothing: only Linux can. When this process is killed kubectl goes on until the next call of Kubectl.
func endWithThread(*exec.Cmd) {}

// processesWith returns the processes of this machine that were started with an argument, which has no spaces.
func processesWith(argument string) (pids []int) {
	output, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output() //nolint:noctx // it only lists
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
