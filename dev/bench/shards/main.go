//go:build unix

// Command shards measures the caches of a program with several replicas on an API server: each replica has a shard of the objects, or
// all objects as with leader election. It creates ConfigMaps in the current cluster, and changes them while the replicas run:
//
//	go run ./shards                # shards; the server selects them with its feature gate ShardedListAndWatch, or the client without
//	go run ./shards -whole         # each replica has all objects
//	go run ./shards -alone         # a replica at a time, as on machines of their own
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// settings are the flags.
type settings struct {
	objects, rate, seconds int
	whole, alone           bool
	replica, of            int // of a child process
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func main() {
	var s settings
	flag.IntVar(&s.objects, "objects", 20000, "number of objects")
	flag.IntVar(&s.rate, "rate", 200, "changes a second")
	flag.IntVar(&s.seconds, "seconds", 30, "duration of the changes")
	flag.BoolVar(&s.whole, "whole", false, "each replica has all objects")
	flag.BoolVar(&s.alone, "alone", false, "run one replica after another")
	flag.IntVar(&s.replica, "replica", 0, "the shard of a child process")
	flag.IntVar(&s.of, "of", 0, "the number of shards, for a child process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := s.measure
	if s.of > 0 {
		run = s.replicate
	}
	if err := run(ctx); err != nil {
		stop()
		log.Fatal(err)
	}
}

func connect(ctx context.Context) (*dynamic.Client, error) {
	cfg, err := transport.Load(ctx, nil)
	if err != nil {
		return nil, err
	}
	return dynamic.Connect(ctx, cfg)
}

// measure prints a row for each number of replicas.
func (s *settings) measure(ctx context.Context) error {
	client, err := connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	w, err := newWorld(ctx, client, s.objects)
	if err != nil {
		return err
	}
	fmt.Println("| replicas | CPU of each | live heap | peak RSS | received | CPU of all | selected by the server |")
	fmt.Println("|---|---|---|---|---|---|---|")
	var one figures
	for _, n := range []int{1, 2, 4, 8} {
		mean, err := s.measureReplicas(ctx, w, n)
		if err != nil {
			return fmt.Errorf("%d replicas: %w", n, err)
		}
		if n == 1 {
			one = mean
		}
		fmt.Printf("| %d | %.2f s (%.2f) | %.1f MB (%.2f) | %.1f MB (%.2f) | %.1f MB (%.2f) | %.2f | %t |\n", n, mean.CPU, mean.CPU/one.CPU,
			mean.Heap/1e6, mean.Heap/one.Heap, mean.RSS/1e6, mean.RSS/one.RSS, mean.Received/1e6, mean.Received/one.Received,
			mean.CPU*float64(n)/one.CPU, mean.ByServer)
	}
	return nil
}

// measureReplicas returns the mean figures of n replicas.
func (s *settings) measureReplicas(ctx context.Context, w *world, n int) (mean figures, err error) {
	atOnce := n
	if s.alone {
		atOnce = 1
	}
	for first := 0; first < n && err == nil; first += atOnce {
		err = s.runReplicas(ctx, w, first, atOnce, n, &mean)
	}
	if want := s.rate * s.seconds; err == nil && (mean.Changes < want-want/10 || mean.Changes > n*want) {
		err = fmt.Errorf("%d changes were received of %d", mean.Changes, want)
	}
	return mean, err
}

// runReplicas runs some of n replicas during changes, and adds their figures to the mean.
func (s *settings) runReplicas(ctx context.Context, w *world, first, count, n int, mean *figures) (err error) {
	var replicas []*child
	defer func() {
		for _, replica := range replicas {
			err = errors.Join(err, replica.stop())
		}
	}()
	for i := range count {
		replica, err := s.start(ctx, first+i, n)
		if err != nil {
			return err
		}
		replicas = append(replicas, replica)
	}
	for _, replica := range replicas {
		if _, err := replica.out.ReadBytes('\n'); err != nil { // it has synced
			return err
		}
	}
	if err := w.change(ctx, s.rate, time.Duration(s.seconds)*time.Second); err != nil {
		return err
	}
	for _, replica := range replicas {
		of, err := replica.figures()
		if err != nil {
			return err
		}
		mean.add(of, n)
	}
	return nil
}

// child is the process of a replica.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (s *settings) start(ctx context.Context, i, n int) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-replica", strconv.Itoa(i), "-of", strconv.Itoa(n), "-whole="+strconv.FormatBool(s.whole))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

// figures ends the work of a replica and returns its costs.
func (c *child) figures() (of figures, err error) {
	if _, err := c.in.Write([]byte{'\n'}); err != nil {
		return figures{}, err
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return figures{}, err
	}
	return of, json.Unmarshal(line, &of)
}

func (c *child) stop() error { return errors.Join(c.in.Close(), c.cmd.Wait()) }
