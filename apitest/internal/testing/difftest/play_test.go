package difftest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// sentinelTimeout bounds the wait for the event that ends a watch.
const sentinelTimeout = 5 * time.Second

// quiet is how long a watch that cannot show its sentinel is read after it.
const quiet = 100 * time.Millisecond

// player plays operations on one server and remembers what references may ask for.
type player struct {
	t         testing.TB
	server    *server
	script    transcript
	objects   map[string]string // path → last JSON
	first     map[string]string // path → first resourceVersion
	last      string            // resourceVersion of the last object
	listed    map[int][2]string // operation → resourceVersion, continue
	watches   map[int][]*openWatch
	reference *regexp.Regexp
}

// openWatch is a watch that is read while other operations are played.
type openWatch struct {
	index    int
	op       Operation
	response *http.Response
	mu       sync.Mutex
	events   []string
	arrived  chan string
	ended    chan struct{}
}

// play plays all operations and returns the answers.
func play(t testing.TB, s *server, namespace, prefix string, operations []Operation) transcript {
	t.Helper()
	p := &player{
		t: t, server: s, script: transcript{namespace: namespace, prefix: prefix, answers: make([]Answer, len(operations))},
		objects: map[string]string{}, first: map[string]string{}, listed: map[int][2]string{}, watches: map[int][]*openWatch{},
		reference: regexp.MustCompile(`\$\{([a-z]+)(?::([^}]*))?\}`),
	}
	for i, op := range operations {
		began := time.Now()
		p.closeWatches(i)
		closed := time.Now()
		p.playOne(i, op)
		if took := time.Since(began); os.Getenv("ANYKIND_APITEST_SLOW") != "" && took > time.Second {
			t.Logf("operation %d took %v and closing watches before it %v: %s %s?%s", i, took, closed.Sub(began), op.Verb, op.Path, op.Query)
		}
	}
	for i := range len(operations) + 200 {
		p.closeWatches(i)
	}
	return p.script
}

func (p *player) playOne(i int, op Operation) {
	path := p.resolve(op.Path)
	target := path
	if op.Query != "" {
		target += "?" + p.resolve(op.Query)
	}
	body := p.resolve(op.Body)
	if op.Base != "" {
		body = p.merged(p.resolve(op.Base), body)
	}
	if op.Watch > 0 {
		p.openWatch(i, op, target)
		return
	}
	answer := p.server.do(p.t, op.Method, target, op.ContentType, op.Accept, body)
	p.script.answers[i] = answer
	if answer.Status < 300 && !strings.Contains(op.Query, "dryRun") && op.Accept == "" {
		p.remember(i, op, path, answer.Body)
	}
	if op.Method == http.MethodPost && strings.Contains(body, `"generateName"`) {
		p.deleteGenerated(path, answer)
	}
}

// deleteGenerated deletes an object with a generated name, whose place in lists is random.
func (p *player) deleteGenerated(path string, answer Answer) {
	found := regexp.MustCompile(`"name":\s*"([^"]*generated-[a-z0-9]{5})"`).FindStringSubmatch(answer.Body)
	if answer.Status == http.StatusCreated && found != nil {
		p.server.do(p.t, http.MethodDelete, path+"/"+found[1]+"?gracePeriodSeconds=0&propagationPolicy=Background", "", "", "")
	}
}

func (p *player) remember(i int, op Operation, path, body string) {
	var object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
			Continue        string `json:"continue"`
		} `json:"metadata"`
	}
	if json.Unmarshal([]byte(body), &object) != nil || object.Kind == "Status" {
		return
	}
	if strings.HasSuffix(object.Kind, "List") && object.Metadata.Name == "" {
		p.listed[i] = [2]string{object.Metadata.ResourceVersion, object.Metadata.Continue}
		return
	}
	if op.Method == http.MethodPost {
		path += "/" + object.Metadata.Name
	}
	for _, subresource := range []string{"/status", "/scale"} {
		path = strings.TrimSuffix(path, subresource)
	}
	if object.Kind == "Scale" {
		return
	}
	p.objects[path], p.last = body, object.Metadata.ResourceVersion
	if _, found := p.first[path]; !found {
		p.first[path] = object.Metadata.ResourceVersion
	}
}

// merged returns the last seen object at the path changed by a merge patch, or the patch itself if none has been seen.
func (p *player) merged(path, patch string) string {
	last, found := p.objects[path]
	if !found {
		return patch
	}
	merged, err := jsonpatch.MergePatch([]byte(last), []byte(patch))
	if err != nil {
		return patch
	}
	return string(merged)
}

func (p *player) resolve(text string) string {
	for range 2 { // references may be inside of keys
		text = p.reference.ReplaceAllStringFunc(text, func(match string) string {
			parts := p.reference.FindStringSubmatch(match)
			return p.value(parts[1], p.resolveNames(parts[2]), match)
		})
	}
	return text
}

func (p *player) resolveNames(text string) string {
	return strings.NewReplacer("<ns>", p.script.namespace, "<p>", p.script.prefix).Replace(text)
}

func (p *player) value(what, key, match string) string {
	var object struct {
		Metadata struct{ ResourceVersion, UID string }
	}
	_ = json.Unmarshal([]byte(p.objects[key]), &object)
	index := 0
	_, _ = fmt.Sscan(key, &index)
	switch what {
	case "ns":
		return p.script.namespace
	case "p":
		return p.script.prefix
	case "rv":
		return orElse(object.Metadata.ResourceVersion, p.last)
	case "oldrv":
		return orElse(p.first[key], p.last)
	case "uid":
		return orElse(object.Metadata.UID, "00000000-0000-0000-0000-000000000000")
	case "listrv":
		return orElse(p.listed[index][0], "0")
	case "continue":
		return p.listed[index][1]
	}
	p.t.Fatalf("unknown reference %s", match)
	return ""
}

func orElse(value, other string) string {
	if value == "" {
		return other
	}
	return value
}

func (p *player) openWatch(i int, op Operation, target string) {
	response := p.server.open(p.t, op.Method, target, "", op.Accept, "")
	p.script.answers[i] = Answer{
		Status: response.StatusCode, ContentType: response.Header.Get("Content-Type"), Warnings: response.Header.Values("Warning"),
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		p.script.answers[i].Body = string(text)
		return
	}
	w := &openWatch{index: i, op: op, response: response, arrived: make(chan string, 10000), ended: make(chan struct{})}
	go w.read()
	p.watches[i+op.Watch] = append(p.watches[i+op.Watch], w)
}

func (w *openWatch) read() {
	defer close(w.ended)
	lines := bufio.NewReader(w.response.Body)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			w.mu.Lock()
			w.events = append(w.events, line)
			w.mu.Unlock()
			w.arrived <- line
		}
		if err != nil {
			return
		}
	}
}

// closeWatches ends the watches that last until operation i: each when it has shown an object created now.
func (p *player) closeWatches(i int) {
	for _, w := range p.watches[i] {
		path := p.resolve(w.op.SentinelPath)
		created := p.server.do(p.t, http.MethodPost, path, "application/json", "", p.resolve(w.op.Sentinel))
		var sentinel struct {
			Metadata struct{ Name string }
		}
		_ = json.Unmarshal([]byte(created.Body), &sentinel)
		w.await(sentinel.Metadata.Name, created.Status == http.StatusCreated && w.op.Shown)
		_ = w.response.Body.Close()
		<-w.ended
		if created.Status == http.StatusCreated {
			p.server.do(p.t, http.MethodDelete, path+"/"+sentinel.Metadata.Name+"?gracePeriodSeconds=0", "", "", "")
		}
		p.script.answers[w.index].Events = w.events
	}
	delete(p.watches, i)
}

// await returns when the sentinel has arrived, the watch has ended, or nothing more is to be expected.
func (w *openWatch) await(name string, shown bool) {
	limit := sentinelTimeout
	if !shown {
		limit = quiet
	}
	deadline := time.After(limit)
	for {
		select {
		case line := <-w.arrived:
			if shown && strings.Contains(line, `"`+name+`"`) && strings.Contains(line, `"ADDED"`) {
				return
			}
		case <-w.ended:
			return
		case <-deadline:
			if shown {
				w.mu.Lock()
				w.events = append(w.events, `{"type":"TIMEOUT"}`)
				w.mu.Unlock()
			}
			return
		}
	}
}
