package schema_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// oracle is the sandbox's API server: a dry run with strict field validation accepts or rejects an object.
type oracle struct {
	conn      *transport.Conn
	namespace string
	isLarge   bool // all objects are validated
	minor     uint // of the server's version
	accepted  int
	export    *caseExport
	resources map[kschema.GroupVersionKind]*discovery.Resource
}

func newOracle(t *testing.T, conn *transport.Conn) *oracle {
	t.Helper()
	namespace := client.NewNamespace(t, client.Connect(t, "admin"))
	o := &oracle{conn: conn, namespace: namespace, minor: cluster.Version(t).Minor(), resources: map[kschema.GroupVersionKind]*discovery.Resource{}}
	snapshot, err := discovery.New(conn, nil).Snapshot(t.Context())
	require.NoError(t, err)
	for resource := range snapshot.Resources() {
		if slices.Contains(resource.Verbs, "create") {
			o.resources[resource.GVK] = resource
		}
	}
	return o
}

// create returns the server's error for a new object. isJudged is false if the server did not judge the object.
func (o *oracle) create(ctx context.Context, gvk kschema.GroupVersionKind, obj map[string]any) (rejection error, isJudged bool, err error) {
	resource := o.resources[gvk]
	if resource == nil {
		return nil, false, nil
	}
	path := "/apis/" + gvk.Group + "/" + gvk.Version
	if gvk.Group == "" {
		path = "/api/" + gvk.Version
	}
	if resource.Namespaced {
		path += "/namespaces/" + o.namespace
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, false, err
	}
	response, err := o.conn.Do(ctx, &transport.Request{
		Method: http.MethodPost, Path: path + "/" + resource.GVR.Resource, Body: body,
		Query: url.Values{"dryRun": {"All"}, "fieldValidation": {"Strict"}}, Header: http.Header{"Content-Type": {"application/json"}},
	})
	switch {
	case err == nil:
		return nil, true, response.Body.Close()
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return err, true, nil
	case errors.As(err, new(*apierrors.StatusError)):
		return nil, false, nil // a quota, an existing object, and others
	}
	return nil, false, err
}

// validate validates an object. Problems with which servers before 1.36 accept an object are dropped: numbers that are too large for
// their format, and integers whose bound has a fraction.
func (o *oracle) validate(t *testing.T, s *schema.Schema, obj map[string]any, isAccepted bool) error {
	t.Helper()
	result := s.Validate(t.Context(), &unstructured.Object{Object: obj}, nil)
	if isAccepted && o.minor < 36 {
		result.Problems = slices.DeleteFunc(result.Problems, func(p schema.Problem) bool {
			return p.Keyword == "format" && (strings.Contains(p.Message, "int32") || strings.HasSuffix(p.Message, "float")) ||
				p.Keyword == "maximum" && strings.HasSuffix(p.Message, "at most 9.5")
		})
	}
	return result.Err()
}

// withoutRules removes the CEL rules of a definition: this module has no evaluator.
func withoutRules(t *testing.T, file corpus.File) corpus.File {
	t.Helper()
	var definition map[string]any
	require.NoError(t, json.Unmarshal(file.JSON, &definition))
	corpus.RemoveRules(definition)
	file.JSON, _ = json.Marshal(definition)
	return file
}

// kindCases has the valid objects of a kind.
type kindCases struct {
	gvk    kschema.GroupVersionKind
	schema *schema.Schema
	valid  []map[string]any
}

func number(t *testing.T, name string, value int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return value
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// TestSchema_ValidateAsRealServer compares the verdicts on objects with a drawn fault. ANYKIND_SCHEMA_CASES is the number of cases,
// ANYKIND_SEED the seed, and ANYKIND_SCHEMA_EXPORT a folder for the objects and verdicts.
func TestSchema_ValidateAsRealServer(t *testing.T) {
	cases := number(t, "ANYKIND_SCHEMA_CASES", 3000)
	seed := number(t, "ANYKIND_SEED", 1)
	t.Logf("%d cases, seed %d", cases, seed)
	conn := connect(t)
	count := 20
	if cases > 10_000 {
		count = 300
	}
	var definitions []corpus.File
	for _, file := range append(corpus.Definitions(t, count), keywordsDefinition) {
		definitions = append(definitions, withoutRules(t, file))
	}
	cluster.Define(t, client.Send(conn), definitions)
	o := newOracle(t, conn)
	o.isLarge = count == 300
	o.export = newCaseExport(t)
	objects := corpusObjects(t)
	kinds := append(customCases(t, o, definitions, objects, seed), builtInCases(t, o, objects)...)
	t.Logf("the server accepts %d objects of the corpus and generated ones", o.accepted)
	compareVerdicts(t, o, kinds, cases, seed)
	o.export.finish(t, conn)
}

// customCases returns the kinds of definitions, with objects that the server accepts.
func customCases(t *testing.T, o *oracle, definitions []corpus.File, objects map[kschema.GroupVersionKind][]map[string]any, seed int) (all []*kindCases) {
	t.Helper()
	published := schema.New(o.conn, nil)
	for i, file := range definitions {
		definition, err := unstructured.Decode(file.JSON)
		require.NoError(t, err)
		offline, err := schema.NewOffline("")
		require.NoError(t, err)
		offline, err = offline.WithDefinitions(definition)
		require.NoError(t, err)
		kinds, err := offline.Kinds(t.Context())
		require.NoError(t, err)
		for _, gvk := range kinds {
			if o.resources[gvk] == nil {
				continue // not served
			}
			s, err := offline.Kind(t.Context(), gvk)
			require.NoError(t, err)
			if i%2 == 0 { // half of the schemas are those that the server publishes
				require.Eventually(t, func() bool {
					of, err := published.Kind(t.Context(), gvk)
					if err == nil {
						s = of
					}
					return err == nil
				}, 90*time.Second, 100*time.Millisecond, gvk)
			}
			one := &kindCases{gvk: gvk, schema: s}
			o.addGenerated(t, one, generator{rand.New(rand.NewPCG(uint64(seed), uint64(i)))})
			o.addAccepted(t, one, objects[gvk])
			if len(one.valid) > 0 {
				all = append(all, one)
			} else {
				t.Logf("no valid object of %s", gvk)
			}
		}
	}
	return all
}

func builtInCases(t *testing.T, o *oracle, objects map[kschema.GroupVersionKind][]map[string]any) (all []*kindCases) {
	t.Helper()
	published := schema.New(o.conn, nil)
	for _, gvk := range slices.SortedFunc(maps.Keys(o.resources), func(a, b kschema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		s, err := published.Kind(t.Context(), gvk)
		require.NoError(t, err)
		if !strings.HasPrefix(s.Name, "io.k8s.api.") {
			continue
		}
		one := &kindCases{gvk: gvk, schema: s}
		o.addAccepted(t, one, objects[gvk])
		if len(one.valid) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// corpusObjects returns the corpus' objects by kind.
func corpusObjects(t *testing.T) map[kschema.GroupVersionKind][]map[string]any {
	t.Helper()
	objects := map[kschema.GroupVersionKind][]map[string]any{}
	for _, file := range corpus.Objects(t, 6000) {
		obj, err := unstructured.Decode(file.JSON)
		require.NoError(t, err)
		objects[obj.GroupVersionKind()] = append(objects[obj.GroupVersionKind()], obj.Object)
	}
	return objects
}

const (
	maxValid    = 12 // objects of a kind
	maxKeywords = 60 // objects of keywordsDefinition
)

// addAccepted adds the objects that the server accepts. None of them may have a problem.
func (o *oracle) addAccepted(t *testing.T, one *kindCases, objects []map[string]any) {
	t.Helper()
	for _, obj := range objects {
		if len(one.valid) >= maxValid && !o.isLarge {
			return
		}
		obj = maps.Clone(obj)
		metadata, _ := obj["metadata"].(map[string]any)
		metadata = maps.Clone(metadata)
		delete(metadata, "namespace")
		delete(metadata, "resourceVersion")
		delete(metadata, "uid")
		obj["metadata"] = metadata
		o.addValid(t, one, obj)
	}
}

func (o *oracle) addGenerated(t *testing.T, one *kindCases, g generator) {
	t.Helper()
	want := maxValid / 2
	if one.gvk.Group == keywordsDefinition.Group {
		want = maxKeywords
	}
	for n := range 4 * want {
		if len(one.valid) >= want {
			return
		}
		obj := g.object(one.schema, 6-n%6)
		obj["apiVersion"] = one.gvk.GroupVersion().String()
		obj["kind"] = one.gvk.Kind
		obj["metadata"] = map[string]any{"name": "generated"}
		o.addValid(t, one, obj)
	}
}

func (o *oracle) addValid(t *testing.T, one *kindCases, obj map[string]any) {
	t.Helper()
	rejection, isJudged, err := o.create(t.Context(), one.gvk, obj)
	require.NoError(t, err)
	problem := o.validate(t, one.schema, obj, rejection == nil)
	if isJudged && rejection == nil {
		o.accepted++
		o.export.add(t, one, obj, false)
		one.valid = append(one.valid, obj)
		if problem != nil {
			content, _ := json.Marshal(obj)
			t.Errorf("%s: the server accepts %s, but: %v", one.gvk, content, problem)
		}
	}
}

// drawnCase is an object with a fault.
type drawnCase struct {
	kind    *kindCases
	keyword string
	obj     map[string]any
}

// draw returns cases, evenly spread over keywords.
func draw(kinds []*kindCases, count int, g generator) []drawnCase {
	type base struct {
		kind *kindCases
		obj  map[string]any
		site site
	}
	bases := map[string][]base{}
	for _, kind := range kinds {
		for _, obj := range kind.valid {
			for keyword, found := range sites(obj, kind.schema) {
				for _, at := range found {
					bases[keyword] = append(bases[keyword], base{kind, obj, at})
				}
			}
		}
	}
	keywords := slices.Sorted(maps.Keys(bases))
	drawn := make([]drawnCase, 0, count)
	for n := range count {
		keyword := keywords[n%len(keywords)]
		one := bases[keyword][g.IntN(len(bases[keyword]))]
		var obj any
		if keyword == "metadata" {
			obj = maps.Clone(one.obj)
			obj.(map[string]any)["metadata"] = g.faultyMeta()
		} else {
			obj = replaced(one.obj, one.site.path, func(value any) (any, bool) { return g.faulty(keyword, one.site, value) })
		}
		drawn = append(drawn, drawnCase{one.kind, keyword, obj.(map[string]any)})
	}
	return drawn
}

// tally counts verdicts.
type tally struct {
	mu                                           sync.Mutex
	same, rejected, falseAlarms, missed, unasked map[string]int
}

func newTally() *tally {
	return &tally{same: map[string]int{}, rejected: map[string]int{}, falseAlarms: map[string]int{}, missed: map[string]int{}, unasked: map[string]int{}}
}

const maxReported = 40 // differences

func compareVerdicts(t *testing.T, o *oracle, kinds []*kindCases, count, seed int) {
	t.Helper()
	var custom, builtIn []*kindCases
	for _, kind := range kinds {
		if strings.HasPrefix(kind.schema.Name, "io.k8s.api.") {
			builtIn = append(builtIn, kind)
		} else {
			custom = append(custom, kind)
		}
	}
	t.Logf("%d custom kinds, %d built-in kinds", len(custom), len(builtIn))
	of := generator{rand.New(rand.NewPCG(uint64(seed), 0))}
	result := o.compare(t, draw(custom, count*3/4, of), true)
	result.log(t, "custom kinds")
	assert.LessOrEqual(t, sum(result.missed)*1000, count*3/4, "more than one in a thousand faults is missed")
	result = o.compare(t, draw(builtIn, count/4, of), false)
	result.log(t, "built-in kinds")
}

// compare asks the server. A false alarm is an error. Faults of custom resources that are not found are logged.
func (o *oracle) compare(t *testing.T, drawn []drawnCase, isCustom bool) *tally {
	t.Helper()
	result := newTally()
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := worker; n < len(drawn); n += 4 {
				o.compareOne(t, result, &drawn[n], isCustom)
			}
		})
	}
	all.Wait()
	return result
}

func (o *oracle) compareOne(t *testing.T, result *tally, one *drawnCase, isCustom bool) {
	rejection, isJudged, err := o.create(t.Context(), one.kind.gvk, one.obj)
	if !assert.NoError(t, err) {
		return
	}
	problem := o.validate(t, one.kind.schema, one.obj, rejection == nil)
	result.mu.Lock()
	defer result.mu.Unlock()
	if isJudged {
		o.export.add(t, one.kind, one.obj, rejection != nil)
	}
	content, _ := json.Marshal(one.obj)
	isReported := sum(result.falseAlarms)+sum(result.missed) < maxReported
	switch {
	case !isJudged:
		result.unasked[one.keyword]++
		return
	case rejection == nil && problem != nil:
		if result.falseAlarms[one.keyword]++; isReported {
			t.Errorf("%s: %s: the server accepts %s, but: %v", one.kind.gvk, one.keyword, content, problem)
		}
	case rejection != nil && problem == nil:
		if result.missed[one.keyword]++; isReported && isCustom {
			t.Logf("%s: %s: not found in %s: %v", one.kind.gvk, one.keyword, content, rejection)
		}
	default:
		result.same[one.keyword]++
	}
	if rejection != nil {
		result.rejected[one.keyword]++
	}
}

func sum(counts map[string]int) (total int) {
	for _, count := range counts {
		total += count
	}
	return total
}

func (r *tally) log(t *testing.T, what string) {
	t.Helper()
	t.Logf("%s: %d the same, %d rejected by the server, %d false alarms, %d missed, %d not judged", what, sum(r.same), sum(r.rejected), sum(r.falseAlarms), sum(r.missed), sum(r.unasked))
	for _, keyword := range slices.Sorted(maps.Keys(r.same)) {
		t.Logf("  %-16s %6d the same, %6d rejected, %4d false alarms, %4d missed, %4d not judged", keyword, r.same[keyword], r.rejected[keyword],
			r.falseAlarms[keyword], r.missed[keyword], r.unasked[keyword])
	}
}
