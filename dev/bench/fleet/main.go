// Command fleet measures package fleet: memory, lists and the delay of changes of a cache of pods over many clusters. A second process
// serves the clusters over TLS and HTTP/2 on loopback, each with a connection of its own:
//
//	go run ./fleet -clusters 100 -pods 2000          # pods of each cluster
//	go run ./fleet -clusters 1000 -pods 0 -seconds 0 # idle clusters
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/cache/packed"
	"github.com/anykind/anykind/fleet"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// settings are the flags.
type settings struct {
	clusters, pods, rate, seconds int
	connections, server           bool
}

func main() {
	var s settings
	flag.IntVar(&s.clusters, "clusters", 100, "number of clusters")
	flag.IntVar(&s.pods, "pods", 2000, "pods of each cluster")
	flag.IntVar(&s.rate, "rate", 1000, "changes a second, of all clusters together")
	flag.IntVar(&s.seconds, "seconds", 30, "duration of the changes")
	flag.BoolVar(&s.connections, "connections", false, "only open a watch of each cluster, without package fleet")
	flag.BoolVar(&s.server, "server", false, "serve the clusters (for the second process)")
	flag.Parse()
	run := s.measure
	if s.server {
		run = func() error { return serve(s.pods, s.rate) }
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// startServer starts the process that serves the clusters. change begins the changes.
func (s *settings) startServer() (serving address, change, stop func() error, err error) {
	program, err := os.Executable()
	if err != nil {
		return address{}, nil, nil, err
	}
	server := exec.Command(program, "-server", "-pods", strconv.Itoa(s.pods), "-rate", strconv.Itoa(s.rate)) //nolint:noctx // until stop
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		return address{}, nil, nil, err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return address{}, nil, nil, err
	}
	if err := server.Start(); err != nil {
		return address{}, nil, nil, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &serving)
	}
	change = func() error {
		_, err := in.Write([]byte{'\n'})
		return err
	}
	return serving, change, func() error { return errors.Join(in.Close(), server.Wait()) }, err
}

func (s *settings) measure() (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	serving, change, stop, err := s.startServer()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: serving.CA})
	configOf := func(cluster int) *transport.Config {
		return &transport.Config{Server: fmt.Sprintf("%s/c/%d", serving.URL, cluster), CAData: ca}
	}
	before := readMemory()
	if s.connections {
		return s.measureConnections(ctx, configOf, before)
	}
	f := fleet.New(&fleet.Options{Sources: []fleet.Source{func(_ context.Context, clusters *fleet.Clusters) error {
		for i := range s.clusters {
			clusters.Set(fmt.Sprint(i), configOf(i))
		}
		return nil
	}}, Logger: slog.New(slog.DiscardHandler)})
	go func() { _ = f.Run(ctx) }()
	pods := fleet.NewCache(f, "pods", &fleet.CacheOptions[unstructured.Lazy]{Options: cache.Options[unstructured.Lazy]{Pack: packed.New[unstructured.Lazy]()}})
	go func() { _ = pods.Run(ctx) }()
	delays := make(chan []time.Duration, 1)
	consuming, stopConsumer := context.WithCancel(ctx)
	defer stopConsumer()
	initial := make(chan struct{}, 1)
	go func() { delays <- s.consume(consuming, pods, initial) }()
	start := time.Now()
	if err := pods.WaitForSync(ctx); err != nil {
		return err
	}
	<-initial
	fmt.Printf("synced %d pods of %d clusters in %s\n", s.clusters*s.pods, s.clusters, time.Since(start).Round(time.Millisecond))
	s.printMemory(before)
	if s.pods >= podsPerNamespace {
		s.printLists(pods)
	}
	if s.seconds == 0 {
		return nil
	}
	if err := change(); err != nil {
		return err
	}
	time.Sleep(time.Duration(s.seconds) * time.Second)
	stopConsumer()
	if err := s.printDelays(<-delays); err != nil {
		return err
	}
	s.printMemory(before)
	return nil
}

func (s *settings) printDelays(all []time.Duration) error {
	slices.Sort(all)
	if len(all) == 0 {
		return errors.New("no change has been received")
	}
	fmt.Printf("changes: %d received, %.0f a second; delay p50 %s, p99 %s, max %s\n", len(all), float64(len(all))/float64(s.seconds),
		all[len(all)/2].Round(time.Microsecond), all[len(all)*99/100].Round(time.Microsecond), all[len(all)-1].Round(time.Microsecond))
	return nil
}

// consume returns the delays of changes between the server and a loop over Changes. initial receives after the initial objects.
func (s *settings) consume(ctx context.Context, pods *fleet.Cache[unstructured.Lazy], initial chan<- struct{}) (delays []time.Duration) {
	remaining := s.clusters * max(s.pods, 0)
	if remaining == 0 {
		initial <- struct{}{}
	}
	for change := range pods.Changes(ctx) {
		switch change.Type {
		case watch.Added:
			if remaining--; remaining == 0 {
				initial <- struct{}{}
			}
		case watch.Modified:
			sent, err := strconv.ParseInt(change.Object.GetAnnotations()["example.com/sent"], 10, 64)
			if err != nil {
				log.Fatal(err)
			}
			delays = append(delays, time.Since(time.Unix(0, sent)))
		default:
		}
	}
	return delays
}

// measureConnections opens a watch of each cluster without a cache, for the costs of connections alone.
func (s *settings) measureConnections(ctx context.Context, configOf func(int) *transport.Config, before memory) error {
	for i := range s.clusters {
		conn, err := transport.Open(configOf(i))
		if err != nil {
			return err
		}
		response, err := conn.Do(ctx, &transport.Request{Path: "/api/v1/pods?watch=1"}) //nolint:bodyclose // until the end of the program
		if err != nil {
			return err
		}
		defer runtime.KeepAlive(response)
		defer runtime.KeepAlive(conn)
	}
	s.printMemory(before)
	return nil
}

func (s *settings) printLists(pods *fleet.Cache[unstructured.Lazy]) {
	var took []time.Duration
	count := 0
	for n := range min(5, s.pods/podsPerNamespace) {
		start := time.Now()
		count = 0
		for _, pod := range pods.List(fmt.Sprintf("ns-%d", n), nil) {
			if pod.GetName() != "" {
				count++
			}
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	fmt.Printf("list of a namespace of all clusters: %d pods in %s (median)\n", count, took[len(took)/2].Round(time.Microsecond))
}

// memory is the memory of the process in bytes, and its goroutines.
type memory struct{ heap, stacks, resident, goroutines int }

// readMemory returns the live heap, and the resident memory from before the collection.
func readMemory() (m memory) {
	time.Sleep(2 * time.Second)
	status, _ := os.ReadFile("/proc/self/status")
	if _, text, found := strings.Cut(string(status), "VmRSS:"); found {
		m.resident, _ = strconv.Atoi(strings.Fields(text)[0])
		m.resident <<= 10
	}
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	m.heap = int(stats.HeapAlloc)    //nolint:gosec // fits
	m.stacks = int(stats.StackInuse) //nolint:gosec // fits
	m.goroutines = runtime.NumGoroutine()
	return m
}

func (s *settings) printMemory(before memory) {
	m := readMemory()
	fmt.Printf("memory: heap %d MB, stacks %d MB, resident %d MB\n", m.heap>>20, m.stacks>>20, m.resident>>20)
	fmt.Printf("each cluster: heap %.1f kB, stacks %.1f kB, %.2f goroutines\n", float64(m.heap-before.heap)/float64(s.clusters)/1000,
		float64(m.stacks-before.stacks)/float64(s.clusters)/1000, float64(m.goroutines-before.goroutines)/float64(s.clusters))
	if total := s.clusters * s.pods; total > 0 {
		fmt.Printf("each pod (%d bytes of JSON): heap %d bytes, resident %d bytes\n", len(podJSON(0, 0, 1, 0)),
			(m.heap-before.heap)/total, (m.resident-before.resident)/total)
	}
}
