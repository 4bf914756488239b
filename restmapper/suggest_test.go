package restmapper_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/restmapper"
)

// typical has the resources among which users mistype.
const typical = `
/v1 pods pod Pod po all
/v1 services service Service svc all
/v1 nodes node Node no
/v1 endpoints endpoints Endpoints ep
apps/v1 deployments deployment Deployment deploy all
apps/v1 statefulsets statefulset StatefulSet sts all
apps/v1 daemonsets daemonset DaemonSet ds all
batch/v1 jobs job Job
batch/v1 cronjobs cronjob CronJob cj all
metrics.k8s.io/v1beta1 pods pod PodMetrics
networking.k8s.io/v1 networkpolicies networkpolicy NetworkPolicy netpol
there.example.com/v1 foos foo Foo`

func TestNoMatchError_Suggestions(t *testing.T) {
	mapper, _ := serve(t, typical)
	for name, want := range map[string]struct {
		suggestions []string
		group       string
	}{
		"svcs":                          {suggestions: []string{"services"}},
		"deploys":                       {suggestions: []string{"deployments.apps"}},
		"stss":                          {suggestions: []string{"statefulsets.apps"}},
		"netpols":                       {suggestions: []string{"networkpolicies.networking.k8s.io"}},
		"deplyo":                        {suggestions: []string{"deployments.apps"}},
		"pods.v1":                       {suggestions: []string{"pods", "pods.metrics.k8s.io"}},
		"svc.v1":                        {suggestions: []string{"services"}},
		"jobs.bacth":                    {suggestions: []string{"jobs.batch"}, group: "bacth"},
		"jbos.batch":                    {suggestions: []string{"jobs.batch"}},
		"deploymnets.app":               {suggestions: []string{"deployments.apps"}},
		"foos.v1.not.there.example.com": {suggestions: []string{"foos.there.example.com"}, group: "not.there.example.com"},
		"bars.v1.not.there.example.com": {group: "not.there.example.com"},
		"bars.not.there.example.com":    {group: "not.there.example.com"},
		"pods.apps":                     {suggestions: []string{"pods", "pods.metrics.k8s.io"}},
		"nodse":                         {suggestions: []string{"nodes"}},
		"zzzzzz":                        {},
	} {
		_, err := mapper.Resource(t.Context(), name)
		var missing *restmapper.NoMatchError
		if assert.ErrorAs(t, err, &missing, name) {
			assert.Equal(t, want.suggestions, missing.Suggestions, name)
			assert.Equal(t, want.group, missing.UnknownGroup, name)
		}
	}
	_, err := mapper.Resource(t.Context(), "foos.v1.not.there.example.com")
	assert.EqualError(t, err, `the server serves no resource or kind "foos.v1.not.there.example.com", `+
		`and no API group "not.there.example.com": did you mean foos.there.example.com?`)
	_, err = mapper.Kind(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Deployment"})
	assert.ErrorContains(t, err, "did you mean deployments.apps?")
}

func TestUnavailableError_NamesGroupAndSuggestions(t *testing.T) {
	mapper := faulty(t, legacy(status(http.StatusServiceUnavailable)))
	for _, name := range []string{"deploymnets", "deploymnets.apps"} {
		_, err := mapper.Resource(t.Context(), name)
		require.ErrorContains(t, err, "did you mean deployments.apps?", name)
	}
	_, err := mapper.Resource(t.Context(), "deploymnets")
	require.EqualError(t, err, `cannot tell whether the server serves "deploymnets": metrics.k8s.io/v1beta1 could not be read: broken; `+
		`among what could be read, did you mean deployments.apps?`)
}

func TestErrors_AreShortAndPrintable(t *testing.T) {
	long := make([]string, 10_000)
	ambiguous := &restmapper.AmbiguousError{Name: "w"}
	unavailable := &restmapper.UnavailableError{Name: "w\x1b[31m\n" + strings.Repeat("x", 10_000)}
	for i := range long {
		long[i] = fmt.Sprintf("name%d", i)
		ambiguous.Candidates = append(ambiguous.Candidates, schema.GroupVersionResource{Group: fmt.Sprintf("g%d.example", i), Resource: "widgets"})
		unavailable.Causes = append(unavailable.Causes, errors.New("\x1b[2Ja page\nof "+strings.Repeat("text", 1000)))
	}
	assert.EqualError(t, ambiguous, `"w" means several resources: say which of widgets.g0.example, widgets.g1.example, `+
		`widgets.g2.example, widgets.g3.example, widgets.g4.example and 9995 more`)
	for _, err := range []error{ambiguous, unavailable, &restmapper.NoMatchError{Name: unavailable.Name, ServedVersions: long, Suggestions: long}} {
		text := err.Error()
		assert.Less(t, len(text), 3000)
		assert.NotContains(t, text, "\n")
		assert.NotContains(t, text, "\x1b")
	}
}

// TestMapper_UnknownNamesCauseBoundedRequests uses a server without aggregated discovery, where each refresh takes 52
// requests.
func TestMapper_UnknownNamesCauseBoundedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		client := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			serveLegacy(w, r, 50)
		}))
		mapper := restmapper.New(client)
		began := time.Now()
		for i := range 1000 {
			_, err := mapper.Resource(t.Context(), fmt.Sprintf("typed-%d", i))
			require.True(t, meta.IsNoMatchError(err), "%v", err)
		}
		assert.Less(t, requests.Load(), int32(400), "1,000 names in %s", time.Since(began))
		assert.Zero(t, time.Since(began), "and none waits")
		time.Sleep(2 * time.Second)
		before := requests.Load()
		requireMissing(t, mapper, "another")
		assert.EqualValues(t, 53, requests.Load()-before, "a snapshot is old after some seconds")
	})
}

// serveLegacy responds as a server without aggregated discovery does that has so many groups.
func serveLegacy(w http.ResponseWriter, r *http.Request, count int) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch r.URL.Path {
	case "/api":
		_, _ = fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/apis":
		var all []string
		for i := range count {
			all = append(all, fmt.Sprintf(`{"name":"g%d","versions":[{"groupVersion":"g%d/v1","version":"v1"}]}`, i, i))
		}
		_, _ = fmt.Fprintf(w, `{"kind":"APIGroupList","groups":[%s]}`, strings.Join(all, ","))
	default:
		_, _ = fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":%q,"resources":[
			{"name":"things-%s","kind":"Thing","namespaced":true,"verbs":["get"]}]}`, strings.Join(parts[1:], "/"), parts[1])
	}
}
