package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/testing/realserver"
	"github.com/anykind/anykind/internal/testing/corpus"
)

// withoutTexts returns the types and fields of causes.
func withoutTexts(causes []string) []string {
	if causes == nil {
		return nil
	}
	short := []string{} // not nil, which means another error
	for _, cause := range causes {
		before, _, _ := strings.Cut(cause, ": ")
		short = append(short, before)
	}
	slices.Sort(short)
	return slices.Compact(short)
}

func TestCreate_CorpusAsRealServer(t *testing.T) {
	server := newRealServer(t)
	compared := 0
	notValidated := 0
	kinds := map[string]int{}
	for _, file := range corpus.Objects(t, 3000) {
		var obj map[string]any
		require.NoError(t, utiljson.Unmarshal(file.JSON, &obj))
		u := unstructuredv1.Unstructured{Object: obj}
		gvk := u.GroupVersionKind()
		r, served := server.resources[gvk]
		if !served || !builtin.Known(gvk) || kinds[gvk.Kind] >= 120 || gvk.Kind == "Namespace" && u.GetName() == "default" {
			continue
		}
		if r.namespaced {
			u.SetNamespace(server.namespace)
		}
		if u.GetName() != "" {
			u.SetName("t-" + u.GetName())
		}
		kinds[gvk.Kind]++
		want := normalize(server.create(t, r, obj))
		got := normalize(create(t, r, gvk, server.namespace, obj))
		want.Causes = withoutTexts(want.Causes)
		got.Causes = withoutTexts(got.Causes)
		lacksSpec := slices.Contains(got.Causes, "FieldValueRequired spec") // the real server names the fields inside
		if len(want.Causes) > 0 && (len(got.Warnings) > 0 || lacksSpec) {
			notValidated++ // the client is warned
			continue
		}
		want.Warnings = nil
		got.Warnings = nil
		assert.Empty(t, realserver.Differences(want, got), "%s %s of %s", gvk.Kind, u.GetName(), file.Source)
		compared++
	}
	assert.Greater(t, compared, 300)
	assert.Less(t, notValidated, 20)
	t.Logf("compared %d objects, %d invalid ones are not validated: %v", compared, notValidated, kinds)
}
