//go:build unix

// Package measure is what the two compared programs share: it runs one task in a process of its own and prints what
// the task cost that process, as JSON.
package measure

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// Settings say what to do. Both programs take them as flags of these names.
type Settings struct {
	Task            string
	Kubeconfig      string
	Namespace       string
	ResourceVersion string // to watch from
	Count           int    // the objects, events or calls that the task must come to
	Profile         string // where profiles go, a path without its ending; "" means none
	// ProfileFor is how long a task is repeated for its profiles: there are a hundred samples a second.
	ProfileFor time.Duration
}

// Task is a piece of work, the same on both sides.
type Task func(ctx context.Context, m *Meter) error

// Figures are what a task cost: time in seconds, memory in bytes.
type Figures map[string]float64

// Main is the program: prepare connects and makes a first request, so that no task pays for the handshake.
func Main(prepare func(ctx context.Context, s *Settings) (map[string]Task, error)) {
	if err := run(prepare); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(prepare func(ctx context.Context, s *Settings) (map[string]Task, error)) error {
	var s Settings
	flag.StringVar(&s.Task, "task", "", "what to do")
	flag.StringVar(&s.Kubeconfig, "kubeconfig", "", "the server to ask")
	flag.StringVar(&s.Namespace, "namespace", "", "where the objects are")
	flag.StringVar(&s.ResourceVersion, "resourceVersion", "", "what to watch from")
	flag.IntVar(&s.Count, "count", 0, "how many objects, events or calls there are")
	flag.StringVar(&s.Profile, "profile", "", "write CPU and allocation profiles to files of this name")
	flag.DurationVar(&s.ProfileFor, "profileFor", 3*time.Second, "how long to repeat the task for its profiles, at least")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tasks, err := prepare(ctx, &s)
	if err != nil {
		return err
	}
	task, ok := tasks[s.Task]
	if !ok {
		return fmt.Errorf("there is no task %q", s.Task)
	}
	if s.Profile != "" {
		return profile(ctx, task, &s)
	}
	figures, err := take(ctx, task, &s)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Task, err)
	}
	return json.NewEncoder(os.Stdout).Encode(figures)
}

// take runs the task once. What the process did before it is not counted.
func take(ctx context.Context, task Task, s *Settings) (Figures, error) {
	m := &Meter{Settings: s, Figures: Figures{}}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m.heapBefore = before.HeapAlloc
	start := begin()
	if err := task(ctx, m); err != nil {
		return nil, err
	}
	m.Figures["wall"], m.Figures["cpu"] = time.Since(start.at).Seconds(), cpuTime()-start.cpu
	runtime.ReadMemStats(&after)
	m.Figures["alloc"] = float64(after.TotalAlloc - before.TotalAlloc)
	m.Figures["allocs"] = float64(after.Mallocs - before.Mallocs)
	return m.Figures, m.check()
}

// cpuTime is the processor time of this process so far, its own and the kernel's for it, in seconds.
func cpuTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
