//go:build unix

// Package measure is the common part of both compared programs: it runs a task and prints the process's cost as JSON.
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

// Settings configure a run. Both programs have flags of these names.
type Settings struct {
	Task            string
	Kubeconfig      string
	Namespace       string
	ResourceVersion string // to watch from
	Resources       string // comma-separated, each as of schema.ParseResourceArg: "deployments.v1.apps"
	Count           int    // number of expected objects, events or calls
	Profile         string // path of the profiles, without extension; "" means none
	// ProfileFor is the duration of repeating a task for its profiles, at a hundred samples a second.
	ProfileFor time.Duration
}

// Task is work of both sides.
type Task func(ctx context.Context, m *Meter) error

// Figures are the costs of a task: time in seconds, memory in bytes.
type Figures map[string]float64

// Main runs the program: prepare connects and sends a first request, so that no task pays for the handshake.
func Main(prepare func(ctx context.Context, s *Settings) (map[string]Task, error)) {
	if err := run(prepare); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(prepare func(ctx context.Context, s *Settings) (map[string]Task, error)) error {
	var s Settings
	flags := flag.NewFlagSet(os.Args[0], flag.ExitOnError) // libraries register flags in the default set
	flags.StringVar(&s.Task, "task", "", "task to run")
	flags.StringVar(&s.Kubeconfig, "kubeconfig", "", "kubeconfig of the server")
	flags.StringVar(&s.Namespace, "namespace", "", "namespace of the objects")
	flags.StringVar(&s.ResourceVersion, "resourceVersion", "", "resourceVersion to watch from")
	flags.StringVar(&s.Resources, "resources", "", "comma-separated resources of the objects, as deployments.v1.apps")
	flags.IntVar(&s.Count, "count", 0, "number of objects, events or calls")
	flags.StringVar(&s.Profile, "profile", "", "write CPU and allocation profiles to files of this name")
	flags.DurationVar(&s.ProfileFor, "profileFor", 3*time.Second, "how long to repeat the task for its profiles, at least")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tasks, err := prepare(ctx, &s)
	if err != nil {
		return err
	}
	task, ok := tasks[s.Task]
	if !ok {
		return fmt.Errorf("unknown task %q", s.Task)
	}
	if s.Profile != "" {
		return profile(ctx, task, &s)
	}
	figures, err := measureTask(ctx, task, &s)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Task, err)
	}
	return json.NewEncoder(os.Stdout).Encode(figures)
}

// measureTask runs the task once. Costs before it are not counted.
func measureTask(ctx context.Context, task Task, s *Settings) (Figures, error) {
	m := &Meter{Settings: s, Figures: Figures{}}
	m.heapBefore = liveHeap()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := begin()
	if err := task(ctx, m); err != nil {
		return nil, err
	}
	m.Figures["wall"] = time.Since(start.at).Seconds()
	m.Figures["cpu"] = cpuTime() - start.cpu
	runtime.ReadMemStats(&after)
	m.Figures["alloc"] = float64(after.TotalAlloc - before.TotalAlloc)
	m.Figures["allocs"] = float64(after.Mallocs - before.Mallocs)
	return m.Figures, m.check()
}

// cpuTime returns the user and system time of this process so far, in seconds.
func cpuTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
