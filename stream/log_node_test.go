package stream_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// logNode is a scripted cluster that keeps logs as nodes do: a file for each run of a container, which is rotated, and
// connections that break.
type logNode struct {
	mu       sync.Mutex
	pods     map[string]*logPod
	version  int
	requests []string
	// breaks returns after how many bytes a followed log's connection ends, and whether regularly; 0 is never.
	breaks func() (after int, well bool)
	// reject, where it returns true, has responded in the server's place.
	reject func(w http.ResponseWriter, r *http.Request) bool
}

type logPod struct {
	name, uid  string
	labels     string
	version    int
	containers map[string]*logContainer
	deleted    bool
}

type logContainer struct {
	restarts int
	running  bool
	lines    []string // with their times
	previous []string
}

const stampFormat = "2006-01-02T15:04:05.000000000Z07:00"

func (n *logNode) add(pod, container string) *logContainer {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pods == nil {
		n.pods = map[string]*logPod{}
	}
	n.version++
	if n.pods[pod] == nil {
		n.pods[pod] = &logPod{name: pod, uid: fmt.Sprint("uid-", n.version), labels: "app=web", containers: map[string]*logContainer{}}
	}
	added := &logContainer{running: true}
	n.pods[pod].containers[container] = added
	n.pods[pod].version = n.version
	return added
}

// write logs a line at a time.
func (n *logNode) write(c *logContainer, at time.Time, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.lines = append(c.lines, at.UTC().Format(stampFormat)+" "+text+"\n")
}

// change changes an object and reports that to watches.
func (n *logNode) change(pod string, change func(*logPod)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.version++
	n.pods[pod].version = n.version
	change(n.pods[pod])
}

func (c *logContainer) restart() {
	c.restarts++
	c.previous = c.lines
	c.lines = nil
}

func (n *logNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.requests = append(n.requests, r.URL.RequestURI())
	n.mu.Unlock()
	if n.reject != nil && n.reject(w, r) {
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/shop/pods"), "/")
	switch {
	case len(parts) == 1 && r.FormValue("watch") != "":
		n.watch(w, r)
	case len(parts) == 1:
		n.list(w)
	case len(parts) == 2:
		n.mu.Lock()
		defer n.mu.Unlock()
		if pod := n.pods[parts[1]]; pod != nil && !pod.deleted {
			_ = json.NewEncoder(w).Encode(pod.object())
			return
		}
		reject(w, 404, "NotFound", "no such pod")
	default:
		n.log(w, r, parts[1])
	}
}

func (n *logNode) list(w http.ResponseWriter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	items := []any{}
	for _, name := range []string{"web-0", "web-1", "web-2"} {
		if pod := n.pods[name]; pod != nil && !pod.deleted {
			items = append(items, pod.object())
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(n.version)}, "items": items,
	})
}

func (p *logPod) object() map[string]any {
	var specs, statuses []any
	labels := map[string]string{}
	for label := range strings.SplitSeq(p.labels, ",") {
		name, value, _ := strings.Cut(label, "=")
		labels[name] = value
	}
	for _, name := range []string{"app", "side"} {
		container := p.containers[name]
		if container == nil {
			continue
		}
		specs = append(specs, map[string]any{"name": name})
		state := map[string]any{"terminated": map[string]any{}}
		if container.running {
			state = map[string]any{"running": map[string]any{}}
		}
		statuses = append(statuses, map[string]any{"name": name, "restartCount": container.restarts, "state": state})
	}
	return map[string]any{
		"metadata": map[string]any{"name": p.name, "namespace": "shop", "uid": p.uid, "labels": labels},
		"spec":     map[string]any{"nodeName": "node-0", "containers": specs},
		"status":   map[string]any{"containerStatuses": statuses},
	}
}

func (n *logNode) watch(w http.ResponseWriter, r *http.Request) {
	seen, _ := strconv.Atoi(r.FormValue("resourceVersion"))
	for r.Context().Err() == nil {
		n.mu.Lock()
		for _, pod := range n.pods {
			if pod.version > seen {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": pod.object()})
			}
		}
		seen = n.version
		n.mu.Unlock()
		_ = http.NewResponseController(w).Flush()
		time.Sleep(10 * time.Millisecond)
	}
}

// log responds as kubelets do: in whole seconds, and from the newest file alone.
func (n *logNode) log(w http.ResponseWriter, r *http.Request, name string) {
	n.mu.Lock()
	pod := n.pods[name]
	if pod == nil || pod.deleted {
		n.mu.Unlock()
		reject(w, 404, "NotFound", "no such pod")
		return
	}
	container := pod.containers[r.FormValue("container")]
	run := container.restarts
	lines := container.lines
	previous := r.FormValue("previous") != ""
	if previous {
		lines = container.previous
	}
	n.mu.Unlock()
	since, _ := time.Parse(time.RFC3339, r.FormValue("sinceTime"))
	skip := 0
	if tail, err := strconv.Atoi(r.FormValue("tailLines")); err == nil {
		skip = max(0, len(lines)-tail)
	}
	limit := 0
	well := true
	if n.breaks != nil {
		limit, well = n.breaks()
	}
	sent := 0
	for at := skip; ; {
		n.mu.Lock()
		ended := !container.running || container.restarts != run || pod.deleted
		if container.restarts == run && !previous {
			if len(container.lines) < len(lines) {
				at = 0 // rotated
			}
			lines = container.lines
		}
		fresh := lines[at:]
		n.mu.Unlock()
		for _, line := range fresh {
			at++
			stamp, _ := time.Parse(stampFormat, line[:strings.IndexByte(line, ' ')])
			if stamp.Before(since) {
				continue
			}
			if limit > 0 && sent+len(line) > limit {
				_, _ = w.Write([]byte(line[:max(0, limit-sent)]))
				_ = http.NewResponseController(w).Flush()
				if !well {
					panic(http.ErrAbortHandler)
				}
				return
			}
			sent += len(line)
			_, _ = w.Write([]byte(line))
		}
		_ = http.NewResponseController(w).Flush()
		if r.FormValue("follow") == "" || ended || r.Context().Err() != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// chatter writes lines over a while, some of them at the same instant, out of order, equal, long or empty, and gives
// their texts.
func chatter(t *testing.T, n *logNode, c *logContainer, random *rand.Rand, count int) (texts []string) {
	for i := range count {
		text := fmt.Sprint("line ", i)
		switch random.Intn(8) {
		case 0:
			text = "again"
		case 1:
			text = ""
		case 2:
			text = strings.Repeat("long ", random.Intn(40_000)) + fmt.Sprint(i)
		}
		n.write(c, time.Now().Add(-time.Duration(random.Intn(200))*time.Millisecond), text)
		texts = append(texts, text)
		time.Sleep(time.Duration(random.Intn(3)) * 300 * time.Millisecond)
	}
	assert.Len(t, texts, count)
	return texts
}
