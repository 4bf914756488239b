//go:build unix

package measure

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

// profiled is how long a task is repeated for its profile: at a hundred samples a second, long enough to tell.
const profiled = 3 * time.Second

// profile writes PROFILE.cpu and PROFILE.allocs.
func profile(ctx context.Context, task Task, s *Settings) error {
	runtime.MemProfileRate = 16 << 10
	cpu, err := os.Create(s.Profile + ".cpu")
	if err != nil {
		return err
	}
	defer cpu.Close()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	for begin := time.Now(); time.Since(begin) < profiled; {
		if _, err = take(ctx, task, s); err != nil {
			break
		}
	}
	pprof.StopCPUProfile()
	if err != nil {
		return err
	}
	allocs, err := os.Create(s.Profile + ".allocs")
	if err != nil {
		return err
	}
	if err := pprof.Lookup("allocs").WriteTo(allocs, 0); err != nil {
		return err
	}
	return allocs.Close()
}
