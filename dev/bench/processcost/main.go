//go:build unix

// Command processcost runs a program and prints its cost as JSON: wall and cpu in seconds, rss, the peak, in bytes, and the lines
// of its output. Linux counts the memory of the parent in the peak RSS of a process, and this parent has little.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(program string, args []string) error {
	command := exec.Command(program, args...)
	lines := &lineCounter{}
	command.Stdout = lines
	command.Stderr = os.Stderr
	begin := time.Now()
	if err := command.Run(); err != nil {
		return err
	}
	figures := map[string]float64{"wall": time.Since(begin).Seconds(), "lines": float64(lines.count)}
	figures["cpu"] = (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
	if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		figures["rss"] = float64(usage.Maxrss) * rssUnit
	}
	return json.NewEncoder(os.Stdout).Encode(figures)
}

// lineCounter counts the lines written by a program.
type lineCounter struct{ count int }

func (c *lineCounter) Write(p []byte) (int, error) {
	c.count += bytes.Count(p, []byte{'\n'})
	return len(p), nil
}
