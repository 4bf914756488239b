// Package progress writes progress to a terminal or log: the current step and its duration.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Intervals of updates of a running step: on a terminal its line is rewritten, in a log a new line is written.
const (
	terminalInterval = time.Second
	logInterval      = 30 * time.Second
)

// Report writes progress. A nil *Report is silent. Safe for concurrent use.
type Report struct {
	out      io.Writer
	terminal bool
	mu       sync.Mutex
}

// New returns a report to out. If out is a terminal, it rewrites a single line.
func New(out io.Writer) *Report {
	if out == nil {
		return nil
	}
	return &Report{out: out, terminal: isTerminal(out)}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// Printf writes a line.
func (r *Report) Printf(format string, args ...any) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "sandbox: "+format+"\n", args...)
}

// Step is a task that takes a while.
type Step struct {
	report  *Report
	what    string
	started time.Time
	stop    chan struct{}
	stopped chan struct{}
}

// Begin writes the description of a step, and until End its duration.
func (r *Report) Begin(format string, args ...any) *Step {
	s := &Step{report: r, what: fmt.Sprintf(format, args...), started: time.Now()}
	if r == nil {
		return s
	}
	s.stop = make(chan struct{})
	s.stopped = make(chan struct{})
	if !r.terminal {
		r.Printf("%s", s.what)
	}
	go s.show()
	return s
}

func (s *Step) show() {
	defer close(s.stopped)
	interval := logInterval
	if s.report.terminal {
		interval = terminalInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if s.report.terminal {
			s.report.rewrite("%s %s", s.what, s.elapsed())
		}
		select {
		case <-ticker.C:
			if !s.report.terminal {
				s.report.Printf("%s: %s so far", s.what, s.elapsed())
			}
		case <-s.stop:
			return
		}
	}
}

func (r *Report) rewrite(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "\r\x1b[Ksandbox: "+format, args...)
}

// End writes the step's duration, or its failure.
func (s *Step) End(err error) {
	if s.report == nil {
		return
	}
	close(s.stop)
	<-s.stopped
	if s.report.terminal {
		s.report.rewrite("")
		fmt.Fprint(s.report.out, "\r\x1b[K")
	}
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	s.report.Printf("%s: %s after %s", s.what, outcome, s.elapsed())
}

func (s *Step) elapsed() time.Duration { return time.Since(s.started).Round(time.Second / 10) }
