//go:build unix

// Command processcost runs a program and prints its cost as JSON: wall and cpu in seconds, rss, the peak, in bytes, the lines
// of its output, the requests that it logs to stderr, and its exit code. Linux counts the memory of the parent in the peak RSS of a process, and this parent has little.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	requests := &lineCounter{marker: []byte("https://")} // of the log at -v=6 of kubectl and anyctl
	command.Stdout = lines
	command.Stderr = io.MultiWriter(requests, os.Stderr)
	begin := time.Now()
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	figures := map[string]float64{"wall": time.Since(begin).Seconds(), "lines": float64(lines.count), "requests": float64(requests.count)}
	figures["exit"] = float64(command.ProcessState.ExitCode())
	figures["cpu"] = (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
	if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		figures["rss"] = float64(usage.Maxrss) * rssUnit
	}
	return json.NewEncoder(os.Stdout).Encode(figures)
}

// lineCounter counts the lines written by a program that contain marker.
type lineCounter struct {
	marker []byte
	line   []byte // its beginning
	count  int
}

func (c *lineCounter) Write(p []byte) (int, error) {
	for rest := p; ; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		if len(c.marker) > 0 {
			c.line = append(c.line, line...)
		}
		if !ended {
			return len(p), nil
		}
		if bytes.Contains(c.line, c.marker) {
			c.count++
		}
		c.line = c.line[:0]
		rest = after
	}
}
