//go:build unix

package measure

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

// profile writes PROFILE.cpu and PROFILE.allocs.
func profile(ctx context.Context, task Task, s *Settings) error {
	runtime.MemProfileRate = 0 // memory profiling takes CPU time
	cpu, err := os.Create(s.Profile + ".cpu")
	if err != nil {
		return err
	}
	defer cpu.Close()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	for begin := time.Now(); time.Since(begin) < s.ProfileFor; {
		if _, err = measureTask(ctx, task, s); err != nil {
			break
		}
	}
	pprof.StopCPUProfile()
	if err != nil {
		return err
	}
	runtime.MemProfileRate = 16 << 10
	if _, err := measureTask(ctx, task, s); err != nil {
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
