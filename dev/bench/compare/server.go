//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// deployment is the object read by the smallest programs.
const deployment = "web"

// server is the API server of both sides. It creates the objects of the tasks.
type server struct {
	conn              *transport.Conn
	client            *dynamic.Client
	shortest, longest int              // of the lists
	podNamespaces     sets.Set[string] // with pods so far
	sets              int              // namespaces of cli-applyset so far

	kubeconfig, dir string // dir is for files
}

func connect(ctx context.Context, opts *options, dir string) (*server, error) {
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: opts.kubeconfig})
	if err != nil {
		return nil, err
	}
	conn, err := transport.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &server{
		conn: conn, client: dynamic.New(conn, nil), shortest: slices.Min(opts.pods), longest: slices.Max(opts.pods),
		podNamespaces: sets.New[string](), kubeconfig: opts.kubeconfig, dir: dir,
	}, nil
}

// prepare creates the objects of a stage.
func (s *server) prepare(ctx context.Context, r run) (place, error) {
	at := place{namespace: listNamespace(r.count)}
	if strings.HasPrefix(r.task, "cli-") {
		err := s.prepareCLI(ctx, r, &at)
		return at, err
	}
	switch r.task {
	case "program":
		return at, nil
	case "mixed", "mixed-lazy", "mixed-packed", "mixed-typed":
		return s.prepareMixed(ctx, r.count)
	case "custom", "custom-lazy", "custom-packed":
		return s.prepareCustom(ctx, r.count)
	case "first":
		return at, s.write(ctx, http.MethodPost, "/apis/apps/v1/namespaces/"+s.conn.Namespace()+"/deployments", deploymentBody)
	case "applyset":
		at.namespace = "bench-applyset"
		return at, s.createNamespace(ctx, at.namespace)
	case "calls", "floor-calls", "applies":
		at.namespace = "bench-calls"
		return at, s.createNamespace(ctx, at.namespace)
	}
	objects := r.count
	if r.task == "cache-minute" { // its count is the number of changes
		objects = s.longest
		at.namespace = listNamespace(objects)
	}
	if strings.HasPrefix(r.task, "cache-churn") || strings.HasPrefix(r.task, "watch-") {
		objects = s.shortest
		at.namespace = listNamespace(objects)
	}
	if err := s.createPods(ctx, at.namespace, objects); err != nil {
		return at, err
	}
	if strings.HasPrefix(r.task, "far-") {
		kubeconfig, err := s.serveFar(ctx)
		at.kubeconfig = kubeconfig
		return at, err
	}
	err := s.prepareChanges(ctx, r, &at, objects)
	return at, err
}

// prepareChanges makes or prepares the changes of a run's pods.
func (s *server) prepareChanges(ctx context.Context, r run, at *place, objects int) (err error) {
	switch {
	case r.task == "watch":
		err = s.changePods(ctx, at, r.count)
	case strings.HasPrefix(r.task, "watch-"):
		at.change, err = s.changeInEtcd(ctx, at.namespace, r.count, objects, livePace(r.task))
	case strings.HasPrefix(r.task, "cache-churn"):
		at.change, err = s.churnInEtcd(ctx, at.namespace, r.count, objects)
	case r.task == "cache-minute":
		at.change, err = s.changeInEtcd(ctx, at.namespace, r.count, objects, pace)
	case strings.HasPrefix(r.task, "cache-event"), r.task == "floor-event":
		at.change = func(ctx context.Context) error { return s.patchPods(ctx, at.namespace, r.count) }
	}
	return err
}

func (s *server) createNamespace(ctx context.Context, name string) error {
	return s.write(ctx, http.MethodPost, "/api/v1/namespaces", fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name))
}

// createPods creates running pods in a namespace.
func (s *server) createPods(ctx context.Context, namespace string, count int) error {
	if err := s.createNamespace(ctx, namespace); err != nil {
		return err
	}
	s.podNamespaces.Insert(namespace)
	pods, err := s.pods(ctx, namespace)
	if err != nil {
		return err
	}
	if last, err := pods.Get(ctx, measure.PodName(count-1), nil); err == nil && last.Object["status"] != nil {
		return nil // created by an earlier stage
	}
	path, err := pods.Path("")
	if err != nil {
		return err
	}
	return s.each(ctx, count, func(ctx context.Context, i int) error {
		if err := s.write(ctx, http.MethodPost, path, podBody(podCreated, i)); err != nil {
			return err
		}
		return s.write(ctx, http.MethodPut, path+"/"+measure.PodName(i)+"/status", podBody(podRunning, i))
	})
}

// changePods changes each pod once, and sets the previous resourceVersion.
func (s *server) changePods(ctx context.Context, at *place, count int) error {
	pods, err := s.pods(ctx, at.namespace)
	if err != nil {
		return err
	}
	before, err := pods.ListPage(ctx, &metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	at.resourceVersion = before.ResourceVersion
	return s.patchPods(ctx, at.namespace, count)
}

// patchPods patches each pod once, with the time of the change.
func (s *server) patchPods(ctx context.Context, namespace string, count int) error {
	pods, err := s.pods(ctx, namespace)
	if err != nil {
		return err
	}
	return s.each(ctx, count, func(ctx context.Context, i int) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, measure.Changed, time.Now().UnixNano())
		_, err := pods.Patch(ctx, measure.PodName(i), types.MergePatchType, patch, nil)
		return err
	})
}

func (s *server) pods(ctx context.Context, namespace string) (*dynamic.Resource, error) {
	pods, err := s.client.Resource(ctx, "pods")
	if err != nil {
		return nil, err
	}
	return pods.Namespace(namespace), nil
}

// workers is the number of concurrent writes.
const workers = 32

// each calls do concurrently for all numbers below count, and last, alone, for count-1. It stops after an error.
func (s *server) each(ctx context.Context, count int, do func(ctx context.Context, i int) error) error {
	workerCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group sync.WaitGroup
	for first := range workers {
		group.Go(func() {
			for i := first; i < count-1; i += workers {
				if err := do(workerCtx, i); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := context.Cause(workerCtx); err != nil {
		return err
	}
	return do(ctx, count-1)
}

// write sends an object. An existing object stays.
func (s *server) write(ctx context.Context, method, path string, body []byte) error {
	response, err := s.conn.Do(ctx, &transport.Request{
		Method: method, Path: path, Body: body, Header: http.Header{"Content-Type": {"application/json"}},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// version returns the server's version.
func (s *server) version(ctx context.Context) (string, error) {
	body, err := s.read(ctx, "/version")
	if err != nil {
		return "", err
	}
	var info struct{ GitVersion string }
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("read the server's version: %w", err)
	}
	return info.GitVersion, nil
}

// podSize returns the length of a pod in JSON.
func (s *server) podSize(ctx context.Context, count int) (string, error) {
	if err := s.createPods(ctx, listNamespace(count), count); err != nil {
		return "", err
	}
	body, err := s.read(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", listNamespace(count), measure.PodName(0)))
	return fmt.Sprintf("%.1f kB", float64(len(body))/1e3), err
}

func (s *server) read(ctx context.Context, path string) ([]byte, error) {
	response, err := s.conn.Do(ctx, &transport.Request{Path: path})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// listNamespace returns the namespace of the list with the given length.
func listNamespace(count int) string { return fmt.Sprintf("bench-%d", count) }

// serverProcess is the folder in /proc of the kube-apiserver that listens on a port of this machine; "" without /proc.
type serverProcess string

func findServer(port string) serverProcess {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		command, err := os.ReadFile(filepath.Join(process, "cmdline"))
		if err == nil && bytes.Contains(command, []byte("--secure-port="+port+"\x00")) {
			return serverProcess(process)
		}
	}
	return ""
}

// cpu returns the user and system time so far, in seconds. Its resolution is 10 ms.
func (p serverProcess) cpu() float64 {
	const ticksPerSecond = 100 // USER_HZ of Linux on every platform of Go
	stat, err := os.ReadFile(filepath.Join(string(p), "stat"))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // from the third field on: proc(5)
	if err != nil || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticksPerSecond
}

// resetPeak makes peak begin at the present RSS: proc_pid_clear_refs(5).
func (p serverProcess) resetPeak() {
	if p != "" {
		_ = os.WriteFile(filepath.Join(string(p), "clear_refs"), []byte("5"), 0)
	}
}

// peak returns the largest RSS since resetPeak, in bytes, or 0.
func (p serverProcess) peak() float64 {
	status, _ := os.ReadFile(filepath.Join(string(p), "status"))
	_, rest, _ := strings.Cut(string(status), "\nVmHWM:")
	var kilobytes float64
	_, _ = fmt.Sscan(rest, &kilobytes)
	return kilobytes * 1024
}

// allocated returns the bytes that the API server has allocated so far, by its metrics.
func (s *server) allocated(ctx context.Context) (bytes float64, err error) {
	text, err := s.read(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\ngo_memstats_alloc_bytes_total ")
	if _, err := fmt.Sscan(rest, &bytes); err != nil {
		return 0, fmt.Errorf("read the API server's metrics: %w", err)
	}
	return bytes, nil
}
