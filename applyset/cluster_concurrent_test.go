package applyset_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured/manifest"
)

// rendezvous delays the requests for a parent until all processes have sent one.
type rendezvous struct {
	next    http.RoundTripper
	arrived *sync.WaitGroup
	once    sync.Once
}

func (m *rendezvous) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(req)
	if strings.Contains(req.URL.Path, "/secrets/concurrent") {
		m.once.Do(m.arrived.Done)
		m.arrived.Wait()
	}
	return response, err
}

// concurrently applies sets of objects at the same time, each by a process with a parent, and returns the errors.
func (e *environment) concurrently(t *testing.T, opts *applyset.ApplyOptions, parents []string, sets ...[]*manifest.Object) []error {
	t.Helper()
	arrived := &sync.WaitGroup{}
	arrived.Add(len(sets))
	errs := make([]error, len(sets))
	var running sync.WaitGroup
	for i, objects := range sets {
		c := client.Connect(t, "admin", func(cfg *transport.Config) {
			cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return &rendezvous{next: next, arrived: arrived} }
		})
		set := applyset.New(c, applyset.Parent{Namespace: e.namespace, Name: parents[i]}, &applyset.Options{Holder: fmt.Sprintf("process %d", i)})
		running.Go(func() { _, errs[i] = set.Apply(t.Context(), objects, opts) })
	}
	running.Wait()
	return errs
}

func (e *environment) configMaps(t *testing.T, value string, names ...string) []*manifest.Object {
	t.Helper()
	var documents []string
	for _, name := range names {
		documents = append(documents, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: NAMESPACE}\ndata: {value: %s}\n", name, value))
	}
	return e.objects(t, strings.Join(documents, "---\n"))
}

// watchDeletes returns a function that returns the names of deleted config maps.
func (e *environment) watchDeletes(t *testing.T) func() []string {
	t.Helper()
	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	page, err := configMaps.ListPage(t.Context(), nil)
	require.NoError(t, err)
	return func() (deleted []string) {
		end, err := configMaps.Create(t.Context(), e.configMaps(t, "end", "end")[0].Object, nil)
		require.NoError(t, err)
		for event, err := range configMaps.Watch(t.Context(), &metav1.ListOptions{ResourceVersion: page.ResourceVersion}) {
			require.NoError(t, err)
			if event.Type == watch.Deleted {
				deleted = append(deleted, event.Object.GetName())
			}
			if event.Object.GetUID() == end.GetUID() {
				break
			}
		}
		_, err = configMaps.Delete(t.Context(), "end", nil)
		require.NoError(t, err)
		return deleted
	}
}

// TestSet_ConcurrentApplies applies different objects of one set at the same time, twice: without and with an existing parent.
func TestSet_ConcurrentApplies(t *testing.T) {
	e := newEnvironment(t)
	for _, suffix := range []string{"1", "2"} {
		deletes := e.watchDeletes(t)
		names := [][]string{{"both", "a" + suffix}, {"both", "b" + suffix}}
		errs := e.concurrently(t, nil, []string{"concurrent", "concurrent"}, e.configMaps(t, "x", names[0]...), e.configMaps(t, "x", names[1]...))
		winner := 0
		if errs[0] != nil {
			winner = 1
		}
		require.NoError(t, errs[winner])
		var locked *applyset.LockedError
		require.ErrorAs(t, errs[1-winner], &locked)
		assert.Equal(t, fmt.Sprintf("process %d", winner), locked.Holder)
		deleted := deletes()
		for _, name := range append(names[0], names[1]...) {
			assert.NotContains(t, deleted, name)
		}
	}
}

// TestSet_OverlappingSets applies two sets with a common object at the same time. Force does not take an object over from a set.
func TestSet_OverlappingSets(t *testing.T) {
	for name, opts := range map[string]*applyset.ApplyOptions{"fail": nil, "force": {Conflicts: applyset.ConflictForce}} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t)
			deletes := e.watchDeletes(t)
			parents := []string{"concurrent-a", "concurrent-b"}
			errs := e.concurrently(t, opts, parents, e.configMaps(t, "a", "both", "a"), e.configMaps(t, "b", "both", "b"))
			winner := 0
			if errs[0] != nil {
				winner = 1
			}
			require.NoError(t, errs[winner])
			var owned *applyset.OwnedError
			require.ErrorAs(t, errs[1-winner], &owned)
			assert.Equal(t, e.set(parents[winner]).Parent().ID(), owned.ID)
			assert.Equal(t, e.set(parents[winner]).FieldManager(), owned.Manager)

			var objectError *applyset.ObjectError
			require.ErrorAs(t, errs[1-winner], &objectError)
			assert.Equal(t, "both", objectError.Object.Name)
			_, err := e.set(parents[1-winner]).Apply(t.Context(), nil, opts)
			require.NoError(t, err)
			assert.Equal(t, []string{[]string{"a", "b"}[1-winner]}, deletes(), "only the loser's own object")
		})
	}
}

// TestSet_AwaitsExpiryOfLock applies a set with the lock of a process that renews it a number of times and ends.
func TestSet_AwaitsExpiryOfLock(t *testing.T) {
	for name, tc := range map[string]struct {
		renewals int
		isLocked bool
	}{"ended": {0, false}, "last request arrives late": {1, false}, "alive": {20, true}} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t)
			set := e.set("expiry")
			_, err := set.Apply(t.Context(), e.configMaps(t, "x", "a"), nil)
			require.NoError(t, err)
			secrets := client.Resource(t, e.Client, "secrets").Namespace(e.namespace)
			renew := func(renewals int) {
				record := fmt.Sprintf(`{"holder":"other","id":"x","duration":"500ms","renewed":"2026-01-01T00:00:00Z","renewals":%d}`, renewals)
				patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"applyset.anykind.dev/lock": record}}})
				assert.NoError(t, err)
				_, err = secrets.Patch(t.Context(), "expiry", types.MergePatchType, patch, nil)
				assert.NoError(t, err)
			}
			renew(0)
			var running sync.WaitGroup
			running.Go(func() {
				for i := range tc.renewals {
					time.Sleep(100 * time.Millisecond)
					renew(i + 1)
				}
			})
			_, err = set.Apply(t.Context(), e.configMaps(t, "z", "a"), nil)
			running.Wait()
			if !tc.isLocked {
				require.NoError(t, err)
				return
			}
			var locked *applyset.LockedError
			require.ErrorAs(t, err, &locked)
			assert.Equal(t, "other", locked.Holder)
		})
	}
}
