//go:build unix

// Package library is the protocol between the command allkinds and its programs: caches of all kinds of a server. The first argument of a
// program is a kubeconfig. A program writes a line of JSON for each line of input.
package library

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Commands of the driver.
const (
	CommandSync    = "sync"    // fills the cache: the result is Objects, without a collection of garbage
	CommandHeap    = "heap"    // the result is Heap, after a collection
	CommandSubtree = "subtree" // has the arguments of Ref: the result is Objects and Seconds
	CommandChanges = "changes" // the result is Delays, of the changes since the last result
)

// Changed is the annotation with the time of a change, in nanoseconds since 1970.
const Changed = "changed"

// Result is the result of a command.
type Result struct {
	Objects int
	Heap    uint64  // bytes
	Seconds float64 // the median
	Delays  []float64
}

// Ref is a reference to an object, the root of a subtree.
type Ref struct{ Group, Kind, Namespace, Name, UID string }

// Library is a cache of all kinds.
type Library interface {
	// Sync fills the cache, and returns the number of its objects. After that the library calls seen for each change.
	Sync(ctx context.Context, seen func(changed string)) (objects int, err error)
	// Subtree returns the number of objects below an object.
	Subtree(root Ref) (objects int, err error)
}

// subtreeRuns is the number of measured subtrees.
const subtreeRuns = 201

// Main runs a program until the end of its input.
func Main(open func(kubeconfig string) (Library, error)) {
	library, err := open(os.Args[1])
	if err == nil {
		err = serve(context.Background(), library, os.Stdin, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

type server struct {
	library Library

	mu     sync.Mutex
	delays []float64
}

func serve(ctx context.Context, library Library, in io.Reader, out io.Writer) error {
	s := &server{library: library}
	results := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		result, err := s.result(ctx, strings.Split(lines.Text(), "\t"))
		if err != nil {
			return err
		}
		if err := results.Encode(result); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (s *server) result(ctx context.Context, command []string) (a Result, err error) {
	switch command[0] {
	case CommandSync:
		a.Objects, err = s.library.Sync(ctx, s.see)
	case CommandHeap:
		runtime.GC() // FreeOSMemory's collection frees the objects of pools
		debug.FreeOSMemory()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		a.Heap = stats.HeapAlloc
	case CommandSubtree:
		if len(command) != 6 {
			return a, errors.New("a subtree has five arguments")
		}
		root := Ref{command[1], command[2], command[3], command[4], command[5]}
		seconds := make([]float64, subtreeRuns)
		for i := range seconds {
			start := time.Now()
			if a.Objects, err = s.library.Subtree(root); err != nil {
				return a, err
			}
			seconds[i] = time.Since(start).Seconds()
		}
		slices.Sort(seconds)
		a.Seconds = seconds[subtreeRuns/2]
	case CommandChanges:
		s.mu.Lock()
		a.Delays = s.delays
		s.delays = nil
		s.mu.Unlock()
	default:
		err = fmt.Errorf("unknown command %q", command[0])
	}
	return a, err
}

// see notes the delay of a change. An object without the annotation has not been changed.
func (s *server) see(changed string) {
	at, err := strconv.ParseInt(changed, 10, 64)
	if err != nil {
		return
	}
	delay := time.Since(time.Unix(0, at)).Seconds()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delays = append(s.delays, delay)
}
