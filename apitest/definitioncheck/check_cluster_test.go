package definitioncheck_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest/definitioncheck"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

// start creates the old definition of a scenario.
func start(t *testing.T, s scenario) *upgrade {
	t.Helper()
	c := client.Connect(t, "admin")
	u := &upgrade{
		scenario: s, client: c, definitions: client.Resource(t, c, "customresourcedefinitions"), namespace: client.NewNamespace(t, c),
		group: fmt.Sprintf("g%d.check.example.com", rand.Uint32()), lostBefore: map[string][]string{},
	}
	_, err := u.definitions.Create(t.Context(), u.definition(t, s.old, false), nil)
	require.NoError(t, err)
	client.DeleteAtEnd(t, u.definitions, "gears."+u.group)
	_, err = u.definitions.Wait(t.Context(), "gears."+u.group, dynamic.Condition("Established"))
	require.NoError(t, err)
	return u
}

func TestCheck_NewDefinition(t *testing.T) {
	t.Parallel()
	c := client.Connect(t, "admin")
	u := &upgrade{group: "new.check.example.com"}
	report, err := definitioncheck.Check(t.Context(), c, u.definition(t, one(size), false), nil)
	require.NoError(t, err)
	assert.Equal(t, &definitioncheck.Report{Name: "gears.new.check.example.com", IsNew: true}, report)
	report, err = definitioncheck.Check(t.Context(), c, u.definition(t, one(`{type: object, properties: {size: {type: none}}}`), false), nil)
	require.NoError(t, err)
	require.NotEmpty(t, report.Definition)
	assert.Equal(t, definitioncheck.Rejected, report.Definition[0].Type)
}

// TestCheck_Webhook names what a conversion webhook leaves open.
func TestCheck_Webhook(t *testing.T) {
	t.Parallel()
	u := start(t, scenario{old: two(sizeAndColor, sizeAndColor), new: two(sizeAndColor, size), objects: []string{"{size: 1, color: red}"}})
	u.create(t, 0, "a")
	definition := u.definition(t, u.new, false)
	require.NoError(t, unstructured.Set(definition, map[string]any{
		"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"},
		},
	}, "spec", "conversion"))
	report, err := definitioncheck.Check(t.Context(), u.client, definition, nil)
	require.NoError(t, err)
	assert.Contains(t, report.NotChecked, "the conversion webhook: it is not run, every version is checked as the server converts it now")
	require.Len(t, report.Definition, 1)
	assert.Equal(t, definitioncheck.ConversionChanged, report.Definition[0].Type)
	assert.Equal(t, 1, report.Objects)
	require.Len(t, report.Findings, 1)
	assert.Equal(t, "v2: FieldLost spec.color (1 objects: "+u.namespace+"/a)", report.Findings[0].String())
}

func TestCheck_NotCheckedVersions(t *testing.T) {
	t.Parallel()
	changed := definition{versions: []version{{name: "v1", spec: size}, {name: "v2", spec: size, isStorage: true}}}
	u := start(t, scenario{old: two(size, size), new: changed})
	u.want = []string{"v2: StorageVersionChanged"}
	u.objects = nil
	u.check(t) // changes the definition
	withRule := one(`{type: object, properties: {size: {type: integer, x-kubernetes-validations: [{rule: "self > 0"}]}}}`)
	report, err := definitioncheck.Check(t.Context(), u.client, u.definition(t, withRule, false), nil)
	require.NoError(t, err)
	assert.Contains(t, report.NotChecked, "the schemas of the versions in which objects are stored (v1, v2): all objects are checked as stored in v2 (migrate them first)")
	assert.Contains(t, report.NotChecked, "CEL rules of v1: x-kubernetes-validations (set Options.Rules to github.com/anykind/anykind/apitest/cel.Rules{})")
}

func TestCheck_LimitsFindings(t *testing.T) {
	t.Parallel()
	u := start(t, scenario{old: one(unknown), objects: []string{"{a: 1, b: 1, c: 1}"}})
	for i := range 3 {
		u.create(t, 0, fmt.Sprintf("gear-%d", i))
	}
	report, err := definitioncheck.Check(t.Context(), u.client, u.definition(t, one(`{type: object}`), false), &definitioncheck.Options{MaxFindings: 2, MaxExamples: 1})
	require.NoError(t, err)
	require.Len(t, report.Findings, 2)
	assert.Positive(t, report.Omitted)
	assert.Equal(t, 3, report.Findings[0].Objects)
	assert.Equal(t, []types.NamespacedName{{Namespace: u.namespace, Name: "gear-0"}}, report.Findings[0].Examples)
	assert.Contains(t, report.Findings[0].String(), "(3 objects: "+u.namespace+"/gear-0, …)")
}

// TestCheck_MemoryDoesNotGrow measures the live heap after each page. ANYKIND_CHECK_OBJECTS is the number of objects.
func TestCheck_MemoryDoesNotGrow(t *testing.T) {
	objects := 2000
	if text := os.Getenv("ANYKIND_CHECK_OBJECTS"); text != "" {
		var err error
		objects, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	u := start(t, scenario{old: one(sizeAndColor), objects: []string{fmt.Sprintf("{size: 1, color: %q}", fmt.Sprintf("%01000d", 0))}})
	u.create(t, 0, "first")
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker + 1; i < objects; i += 8 {
				obj := &unstructured.Object{Object: map[string]any{
					"metadata": map[string]any{"name": fmt.Sprintf("gear-%d", i)},
					"spec":     map[string]any{"size": int64(i), "color": fmt.Sprintf("%01000d", i)},
				}}
				_, err := u.gears("v1").Create(t.Context(), obj, nil)
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	var heaps []uint64
	begin := time.Now()
	var collecting time.Duration
	report, err := definitioncheck.Check(t.Context(), u.client, u.definition(t, one(`{type: object, properties: {size: {type: integer, maximum: 100}}}`), false),
		&definitioncheck.Options{OnProgress: func(version string, _, total int) {
			assert.Equal(t, "v1", version)
			assert.Equal(t, objects, total)
			start := time.Now()
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			heaps = append(heaps, stats.HeapAlloc)
			collecting += time.Since(start)
		}})
	require.NoError(t, err)
	assert.Equal(t, objects, report.Objects)
	assert.Equal(t, objects-101, report.Findings[len(report.Findings)-1].Objects)
	assert.Less(t, heaps[len(heaps)-1], heaps[0]+2<<20, "%v", heaps)
	t.Logf("%d objects: %v, heap after each page: %v", objects, time.Since(begin)-collecting, heaps)
}
