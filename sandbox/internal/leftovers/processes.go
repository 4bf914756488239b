//go:build unix

package leftovers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Processes lists the processes that have text in their command line, as those
// of a cluster have its folder's path. A line is a pid and the command line.
func Processes(text string) ([]string, error) {
	all, err := processes()
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []string
	for _, line := range all {
		if strings.Contains(line, text) {
			found = append(found, fmt.Sprintf("%.200s", line))
		}
	}
	return found, nil
}

// Alive reports whether process pid runs. One that ended and was not collected
// yet does not.
func Alive(pid int) bool {
	all, err := processes()
	if err != nil {
		return true // nobody knows: no reason to say that all is well
	}
	for _, line := range all {
		if strings.HasPrefix(strings.TrimSpace(line), strconv.Itoa(pid)+" ") {
			return true
		}
	}
	return false
}

// processes lists every process that has not ended. Small Linux systems have no
// ps, other systems no /proc.
func processes() ([]string, error) {
	commandLines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	if len(commandLines) == 0 {
		return psProcesses()
	}
	var all []string
	for _, path := range commandLines {
		text, _ := os.ReadFile(path) // empty when the process has ended
		if len(text) > 0 {
			pid := filepath.Base(filepath.Dir(path))
			all = append(all, pid+" "+string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
		}
	}
	return all, nil
}

func psProcesses() ([]string, error) {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		return nil, err
	}
	var all []string
	for line := range strings.SplitSeq(string(out), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 2 && !strings.HasPrefix(fields[1], "Z") {
			all = append(all, fields[0]+" "+strings.Join(fields[2:], " "))
		}
	}
	return all, nil
}
