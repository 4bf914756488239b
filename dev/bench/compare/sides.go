//go:build unix

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/dev/bench/internal/program"
	"github.com/anykind/anykind/transport"
)

const module = "github.com/anykind/anykind/dev/bench/"

// sides are the built programs of both sides. anyctl and kubectl are set by buildCLI.
type sides struct {
	dir, kubeconfig, anyctl, kubectl string
	port                             string // of the API server
	hasControllerRuntime             bool   // set by buildControllerRuntime
	hasFlux                          bool   // set by buildFlux
}

// build builds both sides like a release: without cgo, without symbols.
func build(ctx context.Context, opts *options, dir string) (*sides, error) {
	kubeconfig, err := filepath.Abs(opts.kubeconfig)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	for _, name := range []string{"ours", "theirs", "first/ours", "first/theirs"} {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		err := program.Build(ctx, "", module+name, path, []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w"}, []string{"CGO_ENABLED=0"})
		if err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(opts.progress, "compare: built both sides in %s\n", time.Since(begin).Round(time.Second))
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: kubeconfig})
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(cfg.Server)
	if err != nil {
		return nil, err
	}
	return &sides{dir: dir, kubeconfig: kubeconfig, port: address.Port()}, nil
}

// library returns an identifier of the state of the library, which any change of its code changes.
func (s *sides) library() (string, error) {
	program, err := os.ReadFile(filepath.Join(s.dir, "ours"))
	return fmt.Sprintf("%.6x", sha256.Sum256(program)), err
}

// task runs a task in a process. The process measures its own figures.
func (s *sides) task(ctx context.Context, server *server, r run, at place, more ...string) (measure.Figures, error) {
	if r.side == controllerRuntime {
		if err := s.buildControllerRuntime(ctx); err != nil {
			return nil, err
		}
	}
	if r.side == flux {
		if err := s.buildFlux(ctx); err != nil {
			return nil, err
		}
	}
	args := append([]string{
		"-task", r.task, "-kubeconfig", cmp.Or(at.kubeconfig, s.kubeconfig), "-namespace", at.namespace,
		"-count", strconv.Itoa(r.count), "-resourceVersion", at.resourceVersion, "-resources", at.resources,
	}, more...)
	process := findServer(s.port)
	allocated, err := server.allocated(ctx)
	if err != nil {
		return nil, err
	}
	process.resetPeak()
	cpu := process.cpu()
	output, err := s.runChanging(ctx, at.change, filepath.Join(s.dir, r.side), args...)
	if err != nil || len(more) > 0 {
		return nil, err
	}
	cpu = process.cpu() - cpu
	peak := process.peak()
	figures := measure.Figures{}
	if err := json.Unmarshal(output, &figures); err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.side, r.task, err)
	}
	figures["server-cpu"] = cpu
	figures["both-cpu"] = figures["cpu"] + cpu
	figures["server-peak"] = peak
	after, err := server.allocated(ctx)
	figures["server-alloc"] = after - allocated
	return figures, err
}

// runChanging runs a program, calls change whenever the program is ready, and returns its last line.
func (s *sides) runChanging(ctx context.Context, change func(ctx context.Context) error, program string, args ...string) (last []byte, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	command := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	var failed error
	for lines := bufio.NewScanner(output); lines.Scan(); {
		last = bytes.Clone(lines.Bytes())
		if string(last) != measure.ReadyLine {
			continue
		}
		if failed = change(ctx); failed != nil {
			stop()
			break
		}
	}
	if err := command.Wait(); err != nil || failed != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), cmp.Or(failed, err), stderr.Bytes())
	}
	return last, nil
}

// first measures a whole process of the smallest program.
func (s *sides) first(ctx context.Context, side string) (measure.Figures, error) {
	command := exec.CommandContext(ctx, filepath.Join(s.dir, "first-"+side), "deploy", deployment)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	begin := time.Now()
	output, err := s.run(command)
	if err != nil {
		return nil, err
	}
	if got := strings.TrimSpace(string(output)); got != "Deployment "+deployment {
		return nil, fmt.Errorf("first-%s printed %q", side, got)
	}
	state := command.ProcessState
	return measure.Figures{"wall": time.Since(begin).Seconds(), "cpu": (state.UserTime() + state.SystemTime()).Seconds()}, nil
}

// program returns the size of the smallest program and the number of its packages.
func (s *sides) program(ctx context.Context, side string) (measure.Figures, error) {
	info, err := os.Stat(filepath.Join(s.dir, "first-"+side))
	if err != nil {
		return nil, err
	}
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module+"first/"+side)
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := s.run(list)
	if err != nil {
		return nil, err
	}
	packages := len(strings.Fields(string(output))) - 1 // without the program's own package
	return measure.Figures{"size": float64(info.Size()), "packages": float64(packages)}, nil
}

func (s *sides) run(command *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, stderr.Bytes())
	}
	return output, nil
}
