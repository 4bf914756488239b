//go:build unix

// Command allkinds compares caches of all kinds of a server: package inventory, gitops-engine's cluster cache and a dynamic informer of
// client-go for each kind. Each library has a process of its own, and they run in turn. The command creates the objects in the current
// cluster, and changes them while a library runs:
//
//	go run ./allkinds -objects 10000
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/anykind/anykind/dev/bench/internal/library"
	"github.com/anykind/anykind/dev/bench/internal/program"
)

// settings are the flags.
type settings struct {
	kubeconfig                    string
	kinds, objects, rate, seconds int
}

// figures are the costs of a library: seconds and bytes.
type figures struct {
	objects                                        int
	syncTime, syncCPU, peakRSS, heap, rss, subtree float64
	received, changesCPU, delay, delay99           float64
}

func main() {
	var s settings
	flag.StringVar(&s.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "of the cluster")
	flag.IntVar(&s.kinds, "kinds", 340, "number of custom kinds")
	flag.IntVar(&s.objects, "objects", 10000, "number of objects, in addition to the objects of the server")
	flag.IntVar(&s.rate, "rate", 1000, "changes a second")
	flag.IntVar(&s.seconds, "seconds", 20, "duration of the changes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := s.measure(ctx); err != nil {
		stop()
		log.Fatal(err)
	}
}

// measure prints the figures of each library.
func (s *settings) measure(ctx context.Context) (err error) {
	w, err := newWorld(ctx, s)
	if err != nil {
		return err
	}
	defer w.client.Close()
	log.Printf("creating %d objects", s.objects)
	if err := w.fill(ctx); err != nil {
		return err
	}
	log.Print("building the programs")
	dir, err := os.MkdirTemp("", "anykind-allkinds-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	names := []string{"ours", "gitopsengine", "informers"}
	for _, name := range names {
		pkg := "./allkinds/" + name
		args := []string(nil)
		env := []string{"CGO_ENABLED=0"}
		if name == "gitopsengine" { // its requirements conflict with the requirements of this module
			pkg += "/main.go"
			args = []string{"-modfile", "allkinds/gitopsengine.mod"}
			env = append(env, "GOWORK=off")
		}
		if err := program.Build(ctx, "", pkg, filepath.Join(dir, name), args, env); err != nil {
			return err
		}
	}
	var all []figures
	for _, name := range names {
		of, err := s.measureLibrary(ctx, w, filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		log.Printf("%s: %+v", name, of)
		all = append(all, of)
	}
	printTable(all)
	return nil
}

func (s *settings) measureLibrary(ctx context.Context, w *world, path string) (of figures, err error) {
	p, err := start(ctx, path, s.kubeconfig)
	if err != nil {
		return of, err
	}
	defer p.stop()
	began := time.Now()
	synced, err := p.send(library.CommandSync)
	if err != nil {
		return of, err
	}
	of.objects = synced.Objects
	of.syncTime = time.Since(began).Seconds()
	if of.syncCPU, err = p.cpu(); err != nil {
		return of, err
	}
	if of.peakRSS, err = p.memory("VmHWM:"); err != nil {
		return of, err
	}
	time.Sleep(2 * time.Second) // the consumer has received the initial objects
	heap, err := p.send(library.CommandHeap)
	if err != nil {
		return of, err
	}
	of.heap = float64(heap.Heap)
	if of.rss, err = p.memory("VmRSS:"); err != nil {
		return of, err
	}
	tree, err := p.send(library.CommandSubtree, w.root...)
	if err != nil {
		return of, err
	}
	if tree.Objects != subtreeObjects {
		return of, fmt.Errorf("the subtree has %d objects", tree.Objects)
	}
	of.subtree = tree.Seconds
	return of, s.measureChanges(ctx, w, p, &of)
}

// measureChanges changes objects and adds the figures.
func (s *settings) measureChanges(ctx context.Context, w *world, p *process, of *figures) error {
	if _, err := p.send(library.CommandChanges); err != nil {
		return err
	}
	before, err := p.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := w.change(ctx, s.rate, s.seconds); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	time.Sleep(2 * time.Second) // the last changes arrive
	after, err := p.cpu()
	if err != nil {
		return err
	}
	changes, err := p.send(library.CommandChanges)
	if err != nil {
		return err
	}
	delays := changes.Delays
	if len(delays) == 0 {
		return fmt.Errorf("no change was received of %d", s.rate*s.seconds)
	}
	slices.Sort(delays)
	of.received = float64(len(delays)) / took
	of.changesCPU = after - before
	of.delay = delays[len(delays)/2]
	of.delay99 = delays[len(delays)*99/100]
	return nil
}

func printTable(all []figures) {
	fmt.Printf("| %d objects | anykind | gitops-engine | informers | anykind / gitops-engine |\n|---|---|---|---|---|\n", all[0].objects)
	row := func(name, format string, scale float64, of func(figures) float64) {
		ours := of(all[0])
		fmt.Printf("| %s | "+format+" | "+format+" | "+format+" | %.3f |\n", name, scale*ours, scale*of(all[1]), scale*of(all[2]), ours/of(all[1]))
	}
	row("time to sync", "%.1f s", 1, func(f figures) float64 { return f.syncTime })
	row("CPU until synced", "%.1f s", 1, func(f figures) float64 { return f.syncCPU })
	row("peak RSS until synced", "%.0f MB", 1e-6, func(f figures) float64 { return f.peakRSS })
	row("live heap", "%.1f MB", 1e-6, func(f figures) float64 { return f.heap })
	row("RSS after a collection", "%.0f MB", 1e-6, func(f figures) float64 { return f.rss })
	row("subtree of 50 objects", "%.0f µs", 1e6, func(f figures) float64 { return f.subtree })
	row("received changes a second", "%.0f", 1, func(f figures) float64 { return f.received })
	row("CPU of the changes", "%.1f s", 1, func(f figures) float64 { return f.changesCPU })
	row("delay of a change, median", "%.0f ms", 1e3, func(f figures) float64 { return f.delay })
	row("delay of a change, p99", "%.0f ms", 1e3, func(f figures) float64 { return f.delay99 })
}
