// Command idle measures the memory of a kind without objects in a cache of package inventory, beside a bare HTTP/2 watch of net/http. It
// creates definitions in the current cluster. Each measured process is a second process of this program:
//
//	go run ./allkinds/idle
//
// A figure is the difference between two numbers of kinds, divided by the difference of the numbers. The heap and the stacks are those
// after bookmarks of all watches and a collection of garbage.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"golang.org/x/sync/errgroup"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// settings are the flags.
type settings struct {
	kubeconfig  string
	few, many   int
	wait        time.Duration
	process     string
	heapProfile string
}

// Processes of the flag process.
const (
	inventoryProcess = "inventory" // a cache of all kinds
	streamsProcess   = "streams"   // a watch of net/http for each kind
)

func main() {
	var s settings
	flag.StringVar(&s.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "of the cluster")
	flag.IntVar(&s.few, "few", 40, "the smaller number of kinds")
	flag.IntVar(&s.many, "kinds", 340, "the larger number of kinds")
	flag.DurationVar(&s.wait, "wait", 130*time.Second, "before each measurement: servers send a bookmark about once a minute")
	flag.StringVar(&s.process, "process", "", "measure this process alone: inventory or streams, with the larger number of kinds")
	flag.StringVar(&s.heapProfile, "profile", "", "file for the heap profile of process")
	flag.Parse()
	run := s.compare
	if s.process != "" {
		run = s.measure
	}
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// compare prints the memory of a kind.
func (s *settings) compare(ctx context.Context) error {
	processes := []string{inventoryProcess, streamsProcess}
	var few, many [2]memory
	for _, run := range []struct {
		kinds int
		into  *[2]memory
	}{{s.few, &few}, {s.many, &many}} {
		if err := s.createKinds(ctx, run.kinds); err != nil {
			return err
		}
		var group errgroup.Group
		for i, process := range processes {
			group.Go(func() (err error) {
				run.into[i], err = s.start(ctx, process, run.kinds)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	fmt.Println("| per kind | heap, bytes | stacks, bytes | sum | goroutines |\n|---|---|---|---|---|")
	kinds := float64(s.many - s.few)
	var each [2]memory
	for i := range processes {
		each[i] = memory{(many[i].Heap - few[i].Heap) / kinds, (many[i].Stacks - few[i].Stacks) / kinds, (many[i].Goroutines - few[i].Goroutines) / kinds}
	}
	row := func(name string, m memory) {
		fmt.Printf("| %s | %.0f | %.0f | %.0f | %.2f |\n", name, m.Heap, m.Stacks, m.Heap+m.Stacks, m.Goroutines)
	}
	row("inventory", each[0])
	row("a watch of net/http", each[1])
	row("difference", memory{each[0].Heap - each[1].Heap, each[0].Stacks - each[1].Stacks, each[0].Goroutines - each[1].Goroutines})
	return nil
}

// start measures a process.
func (s *settings) start(ctx context.Context, process string, kinds int) (m memory, err error) {
	program, err := os.Executable()
	if err != nil {
		return m, err
	}
	command := exec.CommandContext(ctx, program, "-kubeconfig", s.kubeconfig, "-process", process, "-kinds", strconv.Itoa(kinds), "-wait", s.wait.String())
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return m, fmt.Errorf("%s: %w", process, err)
	}
	return m, json.Unmarshal(out, &m)
}

// kindsOfGroup is the number of kinds in a group.
const kindsOfGroup = 5

func group(i int) string    { return fmt.Sprintf("idle%d.example.com", i/kindsOfGroup) }
func resource(i int) string { return fmt.Sprintf("idlekind%ds", i) }

// createKinds creates the first definitions, and deletes the remaining definitions of an earlier run.
func (s *settings) createKinds(ctx context.Context, count int) error {
	config, err := transport.Load(ctx, &transport.LoadOptions{Path: s.kubeconfig})
	if err != nil {
		return err
	}
	client, err := dynamic.Connect(ctx, config)
	if err != nil {
		return err
	}
	defer client.Close()
	definitions, err := client.Resource(ctx, "customresourcedefinitions.apiextensions.k8s.io")
	if err != nil {
		return err
	}
	var names []string
	for i := range s.many {
		name := resource(i) + "." + group(i)
		if i < count {
			names = append(names, name)
			_, err = definitions.Create(ctx, definition(i), nil)
		} else {
			_, err = definitions.Delete(ctx, name, nil)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if len(names) == 0 {
		return errors.New("the number of kinds must be positive")
	}
	_, err = client.WaitForResources(ctx, names...)
	return err
}

type fields = map[string]any

func definition(i int) *unstructured.Object {
	kind := fmt.Sprintf("IdleKind%d", i)
	return &unstructured.Object{Object: fields{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": fields{"name": resource(i) + "." + group(i)},
		"spec": fields{
			"group": group(i), "scope": "Namespaced",
			"names": fields{"plural": resource(i), "singular": resource(i)[:len(resource(i))-1], "kind": kind, "listKind": kind + "List"},
			"versions": []any{fields{
				"name": "v1", "served": true, "storage": true, "subresources": fields{"status": fields{}},
				"schema": fields{"openAPIV3Schema": fields{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}
