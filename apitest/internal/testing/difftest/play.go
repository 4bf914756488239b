package difftest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// player plays operations on a server and stores the values of references.
type player struct {
	t       testing.TB
	server  *Server
	kinds   []*kind
	script  transcript
	objects map[string]string // path, or writer and path → last JSON
	first   map[string]string // path → first resourceVersion
	last    string            // resourceVersion of the last object
	listed  map[int][2]string // operation → resourceVersion, continue
	watches []*openWatch
	op      Operation // the current operation
}

var (
	reference     = regexp.MustCompile(`\$\{([a-z]+)(?::([^}]*))?\}`)
	generatedName = regexp.MustCompile(`"name":\s*"([^"]*generated-[a-z0-9]{5})"`)
)

// play plays all operations and returns the transcript.
func play(t testing.TB, s *Server, kinds []*kind, namespace, prefix string, operations []Operation) transcript {
	t.Helper()
	p := &player{
		t: t, server: s, kinds: kinds, script: transcript{namespace: namespace, prefix: prefix, responses: make([]Response, len(operations))},
		objects: map[string]string{}, first: map[string]string{}, listed: map[int][2]string{},
	}
	p.script.began = p.prepare()
	for i, op := range operations {
		p.closeWatches(op.ID)
		p.playOne(i, op)
	}
	p.closeWatches(int(^uint(0) >> 1))
	return p.script
}

// prepare creates the namespaces and returns the resourceVersion after their creation.
func (p *player) prepare() (version int64) {
	for _, name := range []string{p.script.namespace, p.script.namespace + "-empty"} {
		response := p.server.do(p.t, http.MethodPost, "/api/v1/namespaces", "", jsonType, "", `{"metadata":{"name":"`+name+`"}}`)
		var created struct {
			Metadata struct {
				ResourceVersion int64 `json:"resourceVersion,string"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal([]byte(response.Body), &created); err != nil || response.Status != http.StatusCreated {
			p.t.Fatalf("create namespace %s: %d %s", name, response.Status, response.Body)
		}
		version = created.Metadata.ResourceVersion
	}
	return version
}

func (p *player) playOne(i int, op Operation) {
	p.op = op
	switch op.Method {
	case methodRestart, methodCompact:
		p.outage(op.Method)
		return
	}
	path := p.resolve(op.Path)
	target := path
	if op.Query != "" {
		target += "?" + p.resolve(op.Query)
	}
	body := p.resolve(op.Body)
	if op.Base != "" {
		body = p.merged(p.resolve(op.Base), body)
	}
	if op.Current != "" {
		p.awaitCache(op.Current)
	}
	if op.LastOperation > 0 {
		p.openWatch(i, op, target)
		return
	}
	response := p.server.do(p.t, op.Method, target, op.Writer, op.ContentType, op.Accept, body)
	p.script.responses[i] = response
	if response.Status < 300 && !strings.Contains(op.Query, "dryRun") && op.Accept == "" {
		p.remember(op, path, response.Body)
	}
	if op.Method == http.MethodPost && strings.Contains(body, `"generateName"`) {
		p.deleteGenerated(path, response)
	}
}

// awaitCache lists a collection. A list without a resourceVersion waits until the server's cache has all earlier writes.
func (p *player) awaitCache(collection string) {
	p.server.do(p.t, http.MethodGet, p.resolve(collection)+"?labelSelector=difftest%3Dabsent", "", "", "", "")
}

// outage restarts or compacts the server after all watches have ended. A preceding write makes the current resourceVersion newer
// than all objects.
func (p *player) outage(method string) {
	p.closeWatches(int(^uint(0) >> 1))
	path := p.resolve("/api/v1/namespaces/${ns}-empty/configmaps")
	p.server.do(p.t, http.MethodPost, path, "", jsonType, "", `{"metadata":{"name":"before-outage"}}`)
	p.server.do(p.t, http.MethodDelete, path+"/before-outage", "", "", "", "")
	if method == methodCompact {
		p.server.Compact(p.t)
		return
	}
	p.server.Restart(p.t)
	p.server.transport.CloseIdleConnections()
	p.server.awaitServed(p.t, p.kinds, p.script.namespace)
}

// deleteGenerated deletes an object with a generated name. Its position in lists would be random.
func (p *player) deleteGenerated(path string, response Response) {
	found := generatedName.FindStringSubmatch(response.Body)
	if response.Status == http.StatusCreated && found != nil {
		p.server.do(p.t, http.MethodDelete, path+"/"+found[1]+"?gracePeriodSeconds=0&propagationPolicy=Background", "", "", "", "")
	}
}

func (p *player) remember(op Operation, path, body string) {
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
		p.listed[op.ID] = [2]string{object.Metadata.ResourceVersion, object.Metadata.Continue}
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
	p.objects[path] = body
	p.objects[op.Writer+" "+path] = body
	p.last = object.Metadata.ResourceVersion
	if _, found := p.first[path]; !found {
		p.first[path] = object.Metadata.ResourceVersion
	}
}

// seen returns the last JSON of an object visible to the current operation.
func (p *player) seen(path string) (string, bool) {
	if p.op.OwnView {
		if text, found := p.objects[p.op.Writer+" "+path]; found {
			return text, true
		}
	}
	text, found := p.objects[path]
	return text, found
}

// merged applies a merge patch to the last seen object at path. Without such an object it returns the patch.
func (p *player) merged(path, patch string) string {
	last, found := p.seen(path)
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
	for range 2 { // references may be nested in keys
		text = reference.ReplaceAllStringFunc(text, func(match string) string {
			parts := reference.FindStringSubmatch(match)
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
	text, _ := p.seen(key)
	_ = json.Unmarshal([]byte(text), &object)
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
