//go:build unix

// Package soak is the protocol between the soak's driver and its two programs: anykind's caches, and client-go's informers of the
// same sources. The driver writes a [Config] as a line of JSON to a program's standard input and then a line for each command.
// The program writes a line of JSON for each command.
package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/unstructured"
)

// Commands of the driver.
const (
	CommandSample   = "sample"   // the result is a Sample
	CommandVersions = "versions" // the result is a Versions
	CommandStop     = "stop"     // stops every cache, writes a Sample of the remaining resources, and exits
)

// Config configures a program.
type Config struct {
	Kubeconfig string
	Sources    []Source
	Inventory  bool // a cache of all kinds instead of caches of Sources
}

// Source is the source of a cache.
type Source struct {
	Group, Version, Resource string
	Namespace                string // "" for all
	LabelSelector            string
}

func (s Source) String() string {
	return strings.Join([]string{s.Resource, s.Group, s.Namespace, s.LabelSelector}, "/")
}

// Versions has the resourceVersion of each object by namespace/name, for each source by its String.
type Versions map[string]map[string]string

// Failure is the source of the failures of a program in its Versions.
const Failure = "failure"

// Sample has the resources used by a program at a point in time.
type Sample struct {
	At          time.Time
	CPU         float64 // seconds since the start
	RSS         uint64  // bytes, as counted by the kernel; 0 if unknown
	HeapLive    uint64  // bytes of objects, including uncollected garbage
	HeapInuse   uint64  // bytes of spans
	Goroutines  int
	Descriptors int // -1 if unknown
	Objects     int // in all caches
	Events      int64
	Trouble     string // the error of an ended cache, "" while all run
}

// Side keeps caches of sources.
type Side interface {
	// Versions returns the contents of every cache.
	Versions() Versions
	// Count returns the number of objects in all caches, the number of delivered changes, and the error of an ended cache.
	Count() (objects int, events int64, trouble error)
	// Stop ends every cache and returns when all have ended.
	Stop()
}

// Main runs the program: start returns once the caches are being filled.
func Main(start func(ctx context.Context, config *Config) (Side, error)) {
	if err := serve(context.Background(), os.Stdin, os.Stdout, start); err != nil {
		fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+":", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, in io.Reader, out io.Writer, start func(ctx context.Context, config *Config) (Side, error)) error {
	lines := bufio.NewReader(in)
	results := json.NewEncoder(out)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	var config Config
	if err := json.Unmarshal(line, &config); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	side, err := start(ctx, &config)
	if err != nil {
		return err
	}
	for {
		command, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			side.Stop()
			return errors.New("the driver has gone")
		}
		if err != nil {
			return err
		}
		switch command = strings.TrimSpace(command); command {
		case CommandSample:
			err = results.Encode(sampleOf(side))
		case CommandVersions:
			err = results.Encode(side.Versions())
		case CommandStop:
			side.Stop()
			return results.Encode(settled(side))
		default:
			err = fmt.Errorf("unknown command %q", command)
		}
		if err != nil {
			return err
		}
	}
}

// settled samples the remaining resources after a stop, once connections are closed.
func settled(side Side) Sample {
	for range 50 {
		if runtime.NumGoroutine() <= 4 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	debug.FreeOSMemory()
	return sampleOf(side)
}

func sampleOf(side Side) Sample {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s := Sample{
		At: time.Now(), CPU: cpu(), RSS: rss(), HeapLive: memory.HeapAlloc, HeapInuse: memory.HeapInuse,
		Goroutines: runtime.NumGoroutine(), Descriptors: descriptors(),
	}
	var trouble error
	if s.Objects, s.Events, trouble = side.Count(); trouble != nil {
		s.Trouble = trouble.Error()
	}
	return s
}

func cpu() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func rss() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize()) //nolint:gosec // a page's size is positive
}

func descriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(open)
}

// Add adds the UID, resourceVersion and a checksum of an object, for a comparison of all kinds. It removes the managed fields. Of the
// Lease of an API server it adds the UID only.
func (v Versions) Add(obj *unstructured.Object) error {
	gvk := obj.GroupVersionKind()
	for _, field := range []string{"apiVersion", "kind"} {
		delete(obj.Object, field)
	}
	_, _ = unstructured.Delete(obj, "metadata", "managedFields")
	text, err := json.Marshal(obj.Object)
	if err != nil {
		return err
	}
	name := gvk.Kind + "." + gvk.Group
	if v[name] == nil {
		v[name] = map[string]string{}
	}
	key := obj.GetNamespace() + "/" + obj.GetName()
	if name == "Lease.coordination.k8s.io" && obj.GetNamespace() == metav1.NamespaceSystem { // an API server renews it
		v[name][key] = string(obj.GetUID())
		return nil
	}
	v[name][key] = fmt.Sprintf("%s %s %08x", obj.GetUID(), obj.GetResourceVersion(), crc32.ChecksumIEEE(text))
	return nil
}
