package pod

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/internal/terminal"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

// nodeTime is the time format of kubelet logs, with nanoseconds.
const nodeTime = "2006-01-02T15:04:05.000000000Z07:00"

// printLines prints the logs of several containers. With Follow it includes containers started later.
func (o *logOptions) printLines(ctx context.Context, target *dynamic.Resource) error {
	limit := &logLimit{max: o.maxRequests, warn: o.Errorf}
	opts := o.LogOptions
	opts.Filter = func(source stream.LogSource) bool {
		isWanted := o.allContainers || o.Container != "" || source.IsDefault
		return isWanted && (!o.Follow || limit.admit(source))
	}
	opts.OnEnd = func(source stream.LogSource, _ string) { limit.release(source) }
	if o.ignoreErrors {
		opts.OnError = func(_ stream.LogSource, err error) { _ = o.Printf("error: %s\n", command.ServerMessage(err)) }
	}
	painter := o.newPainter()
	for line, err := range stream.LogLines(ctx, target, &opts) {
		if err != nil {
			return err
		}
		if err := o.printLine(painter, &line); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// checkPods prints a message if no pods match the selector. It returns an error if following their logs needs too many requests.
func (o *logOptions) checkPods(ctx context.Context, pods *dynamic.Resource, selector string) error {
	count := 0
	streams := 0
	for pod, err := range pods.List(ctx, &metav1.ListOptions{LabelSelector: selector}) {
		if err != nil {
			return err
		}
		count++
		streams += o.streamsOf(pod)
	}
	if count == 0 {
		namespace, _, err := o.Connection.Namespace(ctx)
		if err != nil {
			return err
		}
		o.Errorf("No resources found in %s namespace.", namespace)
	}
	return o.checkStreams(streams)
}

// streamsOf returns the number of requested logs of a pod.
func (o *logOptions) streamsOf(pod *unstructured.Object) int {
	if !o.allContainers {
		return 1
	}
	names := namesOf(pod)
	return names.count()
}

func (o *logOptions) checkStreams(streams int) error {
	if !o.Follow || streams <= max(1, o.maxRequests) {
		return nil
	}
	return fmt.Errorf("you are attempting to follow %d log streams, but maximum allowed concurrency is %d, "+
		"use --max-log-requests to increase the limit", streams, o.maxRequests)
}

// printLine prints a line with a single Write: concurrent programs in a terminal do not mix their lines.
func (o *logOptions) printLine(painter *painter, line *stream.LogLine) error {
	var text bytes.Buffer
	if o.prefix {
		text.WriteString(painter.prefix(line.Pod, line.Container))
	}
	if o.Timestamps && !line.Time.IsZero() {
		text.WriteString(line.Time.UTC().Format(nodeTime) + " ")
	}
	text.WriteString(line.Text)
	text.WriteByte('\n')
	_, err := printable.Unwrap(o.Out).Write(text.Bytes())
	return err
}

// logLimit limits the number of concurrently followed logs. Containers above the limit are not followed, with a warning for each.
type logLimit struct {
	max  int
	warn func(format string, args ...any)

	mu     sync.Mutex
	active map[string]int // admitted runs of each container: a restarted container has two at times
	warned map[string]bool
}

func sourceKey(source stream.LogSource) string {
	return source.Namespace + "/" + source.Pod + "/" + source.Container
}

// admit reports whether the log of a container's run may be followed. It counts the container until each admitted run is released.
func (l *logLimit) admit(source stream.LogSource) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := sourceKey(source)
	if l.active == nil {
		l.active = map[string]int{}
		l.warned = map[string]bool{}
	}
	if len(l.active) < max(1, l.max) || l.active[key] > 0 {
		l.active[key]++
		return true
	}
	if !l.warned[key] {
		l.warned[key] = true
		l.warn("Warning: the log of pod/%s, container %s, is not followed: use --max-log-requests to follow more than %d",
			source.Pod, source.Container, l.max)
	}
	return false
}

func (l *logLimit) release(source stream.LogSource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := sourceKey(source)
	if l.active[key] > 1 {
		l.active[key]--
	} else {
		delete(l.active, key) // without Follow there is no map
	}
}

// painter formats line prefixes, with a color per container if useColor is set.
type painter struct{ useColor bool }

func (o *logOptions) newPainter() *painter { return &painter{useColor: terminal.UseColor(o.Out)} }

// prefix returns the line prefix of a container.
func (p *painter) prefix(pod, container string) string {
	text := printable.Line("[pod/" + pod + "/" + container + "]")
	if !p.useColor {
		return text + " "
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(pod + "/" + container))
	const colors = 12 // 31 to 36 and 91 to 96: neither black nor white
	color := hash.Sum32() % colors
	code := 31 + color
	if color >= colors/2 {
		code = 91 + color - colors/2
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m ", code, text)
}

// prefixWriter writes a prefix before each line.
type prefixWriter struct {
	out     io.Writer
	prefix  string
	atStart bool
}

func (w *prefixWriter) Write(p []byte) (int, error) {
	var text bytes.Buffer
	for line := range bytes.Lines(p) {
		if w.atStart {
			text.WriteString(w.prefix)
		}
		text.Write(line)
		w.atStart = line[len(line)-1] == '\n'
	}
	if _, err := w.out.Write(text.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}
