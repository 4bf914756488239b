package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/testing/realserver"
)

// Server is one of the two servers, with a namespace of the test.
type Server struct {
	Requests  *realserver.Server
	Namespace string
}

// outcome is the response to a faulty object.
type outcome struct {
	code     int32
	reason   metav1.StatusReason
	causes   []string // "FieldValueInvalid spec.x", sorted and unique
	message  string
	warnings []string
}

func (o outcome) accepted() bool { return o.code < 300 }

func (s Server) send(t testing.TB, method, path string, query url.Values, object map[string]any) (outcome, map[string]any) {
	t.Helper()
	body, err := json.Marshal(object)
	require.NoError(t, err)
	if method == http.MethodGet {
		body = nil
	}
	response, err := s.Requests.Send(t, method, path, query, "application/json", body)
	if err == nil {
		return outcome{code: http.StatusOK, warnings: response.Warnings}, response.Object
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return outcome{code: 599, message: err.Error()}, nil
	}
	o := outcome{code: status.ErrStatus.Code, reason: status.ErrStatus.Reason, message: status.ErrStatus.Message, warnings: response.Warnings}
	if status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			o.causes = append(o.causes, string(cause.Type)+" "+cause.Field)
		}
	}
	slices.Sort(o.causes)
	o.causes = slices.Compact(o.causes)
	return o, nil
}

// A probe is a write of a seed's object: a creation, an update or a write to a subresource.
type probe struct {
	seed        *seed
	subresource string
	update      bool
	schema      *openapi
	prefix      string // of the fields to change
	method      string
	path        func(s Server, name string) string
	name        string
	base        map[string]any    // with all fields of the seed
	live        [2]map[string]any // for updates
}

// title returns the write as "deployments.apps/status".
func (p *probe) title() string {
	if p.subresource != "" {
		return p.seed.name() + "/" + p.subresource
	}
	return p.seed.name()
}

func (p *probe) verb() string {
	if p.update {
		return "update"
	}
	return "create"
}

// lab plays probes on both servers.
type lab struct {
	t       testing.TB
	schemas *schemas
	servers [2]Server // the real server and apitest
	counter int
	created []string // paths of cluster-scoped objects
}

// prepare returns the probes of a seed. It creates the objects to update on both servers.
func (l *lab) prepare(s *seed) (probes []*probe) {
	of := l.schemas.ofKind(s.group, s.version, s.resource.Kind)
	if of == nil {
		l.t.Errorf("no schema of %s", s.name())
		return nil
	}
	l.counter++
	name := nested.String(s.object, "metadata", "name")
	newName := name // an invalid object is rejected before the conflict
	if name == "" {
		name = fmt.Sprintf("probe%d-%s", l.counter, strings.ToLower(l.servers[0].Namespace[max(0, len(l.servers[0].Namespace)-6):]))
		newName = name + "x"
	}
	collection := func(server Server, _ string) string { return s.collection(server.Namespace) }
	if !s.hasVerb("update") || s.resource.Kind == "APIService" || s.resource.Kind == "CustomResourceDefinition" {
		if strings.HasSuffix(s.resource.Kind, "Review") { // has no metadata
			name = ""
		}
		return []*probe{{seed: s, schema: of, method: http.MethodPost, path: collection, name: name, base: s.object}}
	}
	probes = append(probes, &probe{seed: s, schema: of, method: http.MethodPost, path: collection, name: newName, base: s.object})
	one := func(server Server, name string) string { return s.collection(server.Namespace) + "/" + name }
	var live [2]map[string]any
	for i, server := range l.servers {
		object := l.objectFor(s.object, server, name)
		created, stored := server.send(l.t, http.MethodPost, s.collection(server.Namespace), nil, object)
		if !created.accepted() {
			l.t.Errorf("%d: create the seed of %s: %s", i, s.name(), created.message)
			return nil
		}
		live[i] = stored
	}
	if !s.resource.Namespaced {
		l.created = append(l.created, one(l.servers[0], name))
	}
	probes = append(probes, &probe{seed: s, update: true, schema: of, method: http.MethodPut, path: one, name: name, live: live})
	for _, sub := range s.resource.Subresources {
		probes = append(probes, l.subresource(s, of, sub.Name, name, live)...)
	}
	return probes
}

// prefixes maps a subresource to the field changed by its updates.
var prefixes = map[string]string{
	"status": "status", "scale": "spec", "finalize": "spec", "approval": "status", "ephemeralcontainers": "spec.ephemeralContainers", "resize": "spec.containers",
}

// ownKinds maps a created subresource to its kind.
var ownKinds = map[string]schema.GroupVersionKind{
	"eviction": {Group: "policy", Version: "v1", Kind: "Eviction"},
	"binding":  {Version: "v1", Kind: "Binding"},
	"token":    {Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"},
}

func (l *lab) subresource(s *seed, of *openapi, sub, name string, live [2]map[string]any) []*probe {
	path := func(server Server, name string) string {
		return s.collection(server.Namespace) + "/" + name + "/" + sub
	}
	p := &probe{seed: s, subresource: sub, update: true, schema: of, method: http.MethodPut, path: path, name: name, prefix: prefixes[sub], live: live}
	switch sub {
	case "eviction", "binding", "token":
		kind := ownKinds[sub]
		p.schema = l.schemas.ofKind(kind.Group, kind.Version, kind.Kind)
		p.method = http.MethodPost
		p.update = false
		p.base = map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind}
		if sub == "binding" {
			p.base["target"] = map[string]any{"kind": "Node", "name": "n"}
		}
		if sub == "token" {
			p.base["spec"] = map[string]any{"audiences": []any{"a"}}
		}
		return []*probe{p}
	case "scale":
		p.schema = l.schemas.ofKind("autoscaling", "v1", "Scale")
		for i, server := range l.servers {
			_, p.live[i] = server.send(l.t, http.MethodGet, path(server, name), nil, nil)
		}
	case "status", "approval":
		status := nested.Map(s.object, "status")
		for i := range p.live {
			p.live[i] = runtime.DeepCopyJSON(live[i])
			if status != nil {
				p.live[i]["status"] = runtime.DeepCopyJSON(status)
			}
			if sub == "status" && status != nil {
				if s.resource.Kind == "FlowSchema" { // its controller updates it, too
					unstructuredv1.RemoveNestedField(p.live[i], "metadata", "resourceVersion")
				}
				stored, object := l.servers[i].send(l.t, http.MethodPut, path(l.servers[i], name), nil, p.live[i])
				if !stored.accepted() {
					l.t.Errorf("%d: set the status of %s: %s", i, s.name(), stored.message)
					return nil
				}
				p.live[i] = object
				live[i]["status"] = object["status"] // for the update of the object
				live[i]["metadata"] = object["metadata"]
			}
		}
	case "finalize", "ephemeralcontainers", "resize":
	default:
		return nil
	}
	return []*probe{p}
}

// objectFor returns a copy of an object with a name and the server's namespace.
func (l *lab) objectFor(object map[string]any, server Server, name string) map[string]any {
	text, err := json.Marshal(object)
	require.NoError(l.t, err)
	copied := decodeObject(l.t, []byte(strings.ReplaceAll(string(text), "NAMESPACE", server.Namespace)))
	u := unstructuredv1.Unstructured{Object: copied}
	u.SetName(name)
	return copied
}

// faults draws faults of a probe. Each field of the seed is missing once. Further faults: up to count for fields with complete rules,
// and count/10 for fields without.
func (l *lab) faults(r *rand.Rand, p *probe, count int) []fault {
	chosen := map[bool]*sample{true: {r: r, size: count}, false: {r: r, size: count / 10}}
	var always []fault
	d := &drawer{schemas: l.schemas, add: func(path []any) func(fault) {
		if !p.mayChange(path) {
			return nil
		}
		drawn := chosen[p.isComplete(path)]
		return func(f fault) {
			if f.value == nil && len(path) <= 4 { // missing
				always = append(always, f)
			} else {
				drawn.add(f)
			}
		}
	}}
	d.object(p.schema, nil, p.object(), nil, 0)
	return slices.Concat(always, chosen[true].faults, chosen[false].faults)
}

// object returns the object that faults are applied to.
func (p *probe) object() map[string]any {
	if p.update {
		return p.live[0]
	}
	return p.base
}

// mayChange reports whether the write takes a field.
func (p *probe) mayChange(path []any) bool {
	top, _ := path[0].(string)
	switch {
	case top == "apiVersion" || top == "kind" || top == "metadata":
		return false
	case top == "deleteOptions" && isWithin(pathText(path), "deleteOptions.preconditions"): // a conflict, which clients retry
		return false
	case p.prefix != "":
		return isWithin(pathText(path), p.prefix)
	}
	return top != "status" || p.seed.resource.Kind == "Node"
}

// kind returns the kind of the validated objects.
func (p *probe) kind() schema.GroupVersionKind {
	if kind, isOwn := ownKinds[p.subresource]; isOwn {
		return kind
	}
	return schema.GroupVersionKind{Group: p.seed.group, Version: p.seed.version, Kind: p.seed.resource.Kind}
}

func (p *probe) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: p.seed.group, Resource: p.seed.resource.Plural}
}

func (p *probe) countFields() (all, complete int) {
	top, _, _ := strings.Cut(p.prefix, ".")
	return builtin.CountFields(p.kind(), p.groupResource(), p.subresource, top)
}

func (p *probe) isComplete(path []any) bool {
	var names []string
	for _, part := range path {
		if name, ok := part.(string); ok {
			names = append(names, name)
		}
	}
	return builtin.IsComplete(p.kind(), p.groupResource(), p.subresource, names...)
}

// sample is a random choice of size faults.
type sample struct {
	r      *rand.Rand
	size   int
	seen   int
	faults []fault
}

func (s *sample) add(f fault) {
	s.seen++
	if len(s.faults) < s.size {
		s.faults = append(s.faults, f)
	} else if i := s.r.IntN(s.seen); i < s.size {
		s.faults[i] = f
	}
}

// play sends an object with faults to both servers.
func (l *lab) play(p *probe, faults ...fault) (results [2]outcome, played bool) {
	var both sync.WaitGroup
	var objects [2]map[string]any
	for i, server := range l.servers {
		base := p.live[i]
		if !p.update {
			base = l.objectFor(p.base, server, p.name)
		}
		objects[i] = base
		for _, f := range faults {
			object, changes := f.apply(l.schemas, p.schema, objects[i])
			if !changes {
				return results, false
			}
			objects[i] = object
		}
	}
	for i, server := range l.servers {
		both.Go(func() {
			results[i], _ = server.send(l.t, p.method, p.path(server, p.name), url.Values{"dryRun": {"All"}, "fieldValidation": {"Strict"}}, objects[i])
		})
	}
	both.Wait()
	return results, true
}
