package applyset_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured/manifest"
)

// killer ends all requests of a process after a number of requests, as the end of the process does. The last request may still reach
// the server.
type killer struct {
	next     http.RoundTripper
	armed    atomic.Bool
	left     atomic.Int64 // requests that the process survives
	lastSent bool         // the request of the kill reaches the server
}

var errKilled = errors.New("the process was killed")

func (k *killer) RoundTrip(req *http.Request) (*http.Response, error) {
	if !k.armed.Load() {
		return k.next.RoundTrip(req)
	}
	left := k.left.Add(-1)
	if left >= 0 {
		return k.next.RoundTrip(req)
	}
	if left == -1 && k.lastSent {
		if response, err := k.next.RoundTrip(req); err == nil {
			_ = response.Body.Close()
		}
	}
	return nil, errKilled
}

// afterKill calls run, and again if a request of the killed process arrived during the first call.
func afterKill(run func() error) error {
	err := run()
	var locked *applyset.LockedError
	if errors.As(err, &locked) {
		err = run()
	}
	return err
}

// TestSet_ApplyConvergesAfterKill kills the process at every request of random transitions of a set. The next run converges to the
// same state as a run without a kill, and deletes nothing else.
func TestSet_ApplyConvergesAfterKill(t *testing.T) {
	c := client.Connect(t, "admin")
	transitions := count(t, "ANYKIND_APPLYSET_TRANSITIONS", 0)
	size := 20
	if transitions == 0 { // in the normal tests
		transitions = 2
		size = 5
	}
	kills := 0
	for i := range transitions {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			crash := &crashTest{client: c, random: rand.New(rand.NewPCG(seed, 0)), lastSent: i%2 == 0, size: size}
			kills += crash.run(t)
		})
	}
	t.Logf("%d transitions, %d kills", transitions, kills)
}

type crashTest struct {
	client   *dynamic.Client
	random   *rand.Rand
	lastSent bool
	size     int // maximum number of objects
}

// run kills a transition at every request and returns the number of kills.
func (c *crashTest) run(t *testing.T) int {
	t.Helper()
	from := c.choose()
	to := c.choose()
	for kills := 0; ; kills++ {
		namespace := client.NewNamespace(t, c.client)
		more := client.NewNamespace(t, c.client)
		parent := applyset.Parent{Namespace: namespace, Name: "crash"}
		set := applyset.New(c.client, parent, nil)
		_, err := set.Apply(t.Context(), c.objects(t, from, namespace, more), nil)
		require.NoError(t, err)
		killed := c.apply(t, parent, c.objects(t, to, namespace, more), kills)
		err = afterKill(func() error {
			_, err := set.Apply(t.Context(), c.objects(t, to, namespace, more), nil)
			return err
		})
		require.NoError(t, err, "after kill %d", kills)
		assert.Equal(t, to.names(), c.existing(t, namespace, more), "after kill %d", kills)
		status, err := set.Status(t.Context(), c.objects(t, to, namespace, more))
		require.NoError(t, err)
		for _, object := range status {
			assert.Empty(t, object.Drift, "after kill %d: %s", kills, object.Object)
			assert.False(t, object.Prunable, "after kill %d: %s", kills, object.Object)
		}
		c.checkRecord(t, to, namespace, more)
		if !killed {
			return kills
		}
		require.Less(t, kills, 200, "a run without a kill")
	}
}

// apply applies objects in a process that ends after a number of requests. It reports whether the process was killed.
func (c *crashTest) apply(t *testing.T, parent applyset.Parent, objects []*manifest.Object, requests int) bool {
	t.Helper()
	kill := &killer{lastSent: c.lastSent}
	kill.left.Store(int64(requests))
	doomed := client.Connect(t, "admin", func(cfg *transport.Config) {
		cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			kill.next = next
			return kill
		}
	})
	kill.armed.Store(true)
	_, err := applyset.New(doomed, parent, &applyset.Options{LockDuration: 150 * time.Millisecond}).Apply(t.Context(), objects, nil)
	return err != nil // of the kill, or because the lock was not renewed in time
}

// crashSet maps the names of objects to their values.
type crashSet map[string]string

func (s crashSet) names() []string {
	all := []string{}
	for name, value := range s {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}

// crashKinds are the kinds of the objects, with the field for a value.
var crashKinds = []string{
	"apiVersion: v1\nkind: ConfigMap\ndata: {value: VALUE}", "apiVersion: v1\nkind: Secret\nstringData: {value: VALUE}",
	"apiVersion: v1\nkind: ServiceAccount", "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nspec: {podSelector: {matchLabels: {value: VALUE}}}",
}

// choose returns a random set of up to c.size objects, named KIND-NUMBER-NAMESPACE.
func (c *crashTest) choose() crashSet {
	set := crashSet{}
	kinds := 1 + c.random.IntN(len(crashKinds))
	for range c.random.IntN(c.size + 1) {
		set[fmt.Sprintf("%d-%d-%d", c.random.IntN(kinds), c.random.IntN(10), c.random.IntN(2))] = string(rune('a' + c.random.IntN(3)))
	}
	return set
}

func (c *crashTest) objects(t *testing.T, set crashSet, namespaces ...string) []*manifest.Object {
	t.Helper()
	var documents []string
	for name, value := range set {
		text := strings.ReplaceAll(crashKinds[name[0]-'0'], "VALUE", value)
		namespace := namespaces[name[len(name)-1]-'0']
		documents = append(documents, text+fmt.Sprintf("\nmetadata: {name: %q, namespace: %s, labels: {value: %s}}\n", "x"+name, namespace, value))
	}
	objects, err := manifest.Decode("crash", strings.NewReader(strings.Join(documents, "---\n")))
	require.NoError(t, err)
	return objects
}

// existing returns the objects in the namespaces, in the form of crashSet.names.
func (c *crashTest) existing(t *testing.T, namespaces ...string) []string {
	t.Helper()
	all := []string{}
	for _, name := range []string{"configmaps", "secrets", "serviceaccounts", "networkpolicies.networking.k8s.io"} {
		for _, namespace := range namespaces {
			handle := client.Resource(t, c.client, name).Namespace(namespace)
			for obj, err := range handle.Metadata().List(t.Context(), &metav1.ListOptions{LabelSelector: "value"}) {
				require.NoError(t, err)
				all = append(all, obj.GetName()[1:]+"="+obj.GetLabels()["value"])
			}
		}
	}
	slices.Sort(all)
	return all
}

// checkRecord checks the kinds and namespaces of the parent, and that it is not locked.
func (c *crashTest) checkRecord(t *testing.T, set crashSet, namespace, more string) {
	t.Helper()
	parent, err := client.Resource(t, c.client, "secrets").Namespace(namespace).Get(t.Context(), "crash", nil)
	require.NoError(t, err)
	kinds := map[string]bool{}
	additional := ""
	for name := range set {
		kinds[[]string{"ConfigMap", "Secret", "ServiceAccount", "NetworkPolicy.networking.k8s.io"}[name[0]-'0']] = true
		if strings.HasSuffix(name, "1") {
			additional = more
		}
	}
	assert.ElementsMatch(t, strings.FieldsFunc(parent.GetAnnotations()["applyset.kubernetes.io/contains-group-kinds"], func(r rune) bool { return r == ',' }),
		slices.Collect(maps.Keys(kinds)))
	assert.Equal(t, additional, parent.GetAnnotations()["applyset.kubernetes.io/additional-namespaces"])
	assert.Contains(t, parent.GetAnnotations()["applyset.anykind.dev/lock"], `"released":true`)
}
