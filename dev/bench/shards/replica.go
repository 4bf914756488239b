//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dev/bench/internal/program"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// figures are the costs of a replica: seconds and bytes.
type figures struct {
	CPU, Heap, RSS, Received float64
	Changes                  int
	ByServer                 bool
}

// add adds the share of a replica of n to a mean. Changes are added up.
func (f *figures) add(of figures, n int) {
	f.CPU += of.CPU / float64(n)
	f.Heap += of.Heap / float64(n)
	f.RSS += of.RSS / float64(n)
	f.Received += of.Received / float64(n)
	f.Changes += of.Changes
	f.ByServer = of.ByServer
}

// replicate runs the cache of a replica until a line arrives, and prints the figures.
func (s *settings) replicate(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	var opts cache.Options[unstructured.Lazy]
	if !s.whole {
		opts.Shard = shard.Split(shard.UID, s.of)[s.replica]
	}
	objects := cache.New(dynamic.As[unstructured.Lazy](client.ForGVR(configMaps)).AllNamespaces(), &opts)
	ended := make(chan error, 1)
	go func() { ended <- objects.Run(ctx) }()
	var changes atomic.Int64
	go func() {
		for change := range objects.Changes(ctx) {
			if change.Type == watch.Modified {
				changes.Add(1)
			}
		}
	}()
	if err := objects.WaitForSync(ctx); err != nil {
		return err
	}
	fmt.Println()
	if _, err := bufio.NewReader(os.Stdin).ReadBytes('\n'); err != nil {
		return err
	}
	of, err := readFigures()
	if err != nil {
		return err
	}
	of.Changes = int(changes.Load())
	of.ByServer, _ = objects.IsSharded()
	runtime.KeepAlive(objects)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(of)
}

// readFigures returns the costs of this process so far.
func readFigures() (of figures, err error) {
	time.Sleep(time.Second) // the last changes arrive
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return figures{}, err
	}
	of.CPU = (time.Duration(usage.Utime.Nano()) + time.Duration(usage.Stime.Nano())).Seconds()
	if of.RSS, err = program.ProcValue("/proc/self/status", "VmHWM:"); err != nil {
		return figures{}, err
	}
	of.RSS *= 1024
	// Nearly all that the process has read came from the server.
	if of.Received, err = program.ProcValue("/proc/self/io", "rchar:"); err != nil {
		return figures{}, err
	}
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	of.Heap = float64(stats.HeapAlloc)
	return of, nil
}
