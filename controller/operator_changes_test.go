package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// TestOperator_ChangesOfOneObject sends the changes of an object, such as "DELETED u1 2", to the cache of a watch. At
// "reconcile" the handler is called, at "fail" it returns an error, and "meanwhile" sends the next change while it runs. From
// "lag" on the watch does not take changes from the cache. "early" takes a deletion that the cache does not have yet, as a deletion between
// the lookup of the object and the lookup of its deletion.
func TestOperator_ChangesOfOneObject(t *testing.T) {
	for name, tc := range map[string]struct {
		steps string
		want  []string
	}{
		"merged":                       {"ADDED u1 1, MODIFIED u1 2, reconcile, reconcile", []string{"ADDED u1 2"}},
		"changed":                      {"ADDED u1 1, reconcile, MODIFIED u1 2, reconcile", []string{"ADDED u1 1", "MODIFIED u1 2 was 1"}},
		"deleted":                      {"ADDED u1 1, reconcile, DELETED u1 2, reconcile, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1"}},
		"deleted while it is handled":  {"ADDED u1 1, meanwhile, DELETED u1 2, reconcile, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1"}},
		"deleted before it is handled": {"ADDED u1 1, early DELETED u1 2, reconcile, lag, DELETED u1 2, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1"}},
		"replacement is deleted while the deletion is handled": {"ADDED u1 1, reconcile, DELETED u1 2, ADDED u2 3, meanwhile, DELETED u2 4, reconcile",
			[]string{"ADDED u1 1", "DELETED u1 2 was 1", "ADDED u2 3", "DELETED u2 4 was 3"}},
		"created and deleted":          {"ADDED u1 1, DELETED u1 2, reconcile", nil},
		"created again":                {"ADDED u1 1, reconcile, DELETED u1 2, reconcile, ADDED u2 3, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1", "ADDED u2 3"}},
		"replaced":                     {"ADDED u1 1, reconcile, DELETED u1 2, ADDED u2 3, reconcile, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1", "ADDED u2 3"}},
		"replaced and deleted":         {"ADDED u1 1, reconcile, DELETED u1 2, ADDED u2 3, DELETED u2 4, reconcile", []string{"ADDED u1 1", "DELETED u1 1 was 1 final state unknown"}},
		"deleted, not received yet":    {"ADDED u1 1, reconcile, lag, DELETED u1 2, reconcile", []string{"ADDED u1 1", "DELETED u1 1 was 1 final state unknown"}},
		"replaced, not received yet":   {"ADDED u1 1, reconcile, lag, DELETED u1 2, ADDED u2 3, reconcile", []string{"ADDED u1 1", "DELETED u1 1 was 1 final state unknown", "ADDED u2 3"}},
		"creation fails":               {"ADDED u1 1, fail, reconcile, reconcile", []string{"ADDED u1 1", "ADDED u1 1"}},
		"creation fails, changed":      {"ADDED u1 1, fail, MODIFIED u1 2, reconcile, DELETED u1 3, reconcile", []string{"ADDED u1 1", "ADDED u1 2", "DELETED u1 3 was 2"}},
		"creation fails, deleted":      {"ADDED u1 1, fail, DELETED u1 2, reconcile, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1"}},
		"creation panics, deleted":     {"ADDED u1 1, panic, DELETED u1 2, reconcile, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1"}},
		"creation fails, replaced":     {"ADDED u1 1, fail, DELETED u1 2, ADDED u2 3, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1", "ADDED u2 3"}},
		"deleted while creation fails": {"ADDED u1 1, fail meanwhile, DELETED u1 2, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1"}},
		"all fail, replaced": {"ADDED u1 1, fail, DELETED u1 2, ADDED u2 3, fail, DELETED u2 4, reconcile",
			[]string{"ADDED u1 1", "DELETED u1 2 was 1", "DELETED u1 1 was 1 final state unknown"}},
		"change fails":                       {"ADDED u1 1, reconcile, MODIFIED u1 2, fail, MODIFIED u1 3, reconcile", []string{"ADDED u1 1", "MODIFIED u1 2 was 1", "MODIFIED u1 3 was 1"}},
		"deletion fails":                     {"ADDED u1 1, reconcile, DELETED u1 2, fail, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1", "DELETED u1 2 was 1"}},
		"creation is terminal":               {"ADDED u1 1, terminal, MODIFIED u1 2, reconcile", []string{"ADDED u1 1", "ADDED u1 2"}},
		"deletion is terminal":               {"ADDED u1 1, reconcile, DELETED u1 2, terminal, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1"}},
		"deletion is terminal, replaced":     {"ADDED u1 1, reconcile, DELETED u1 2, ADDED u2 3, terminal once, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1", "ADDED u2 3"}},
		"deletion and creation are terminal": {"ADDED u1 1, reconcile, DELETED u1 2, ADDED u2 3, terminal, MODIFIED u2 4, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1", "ADDED u2 3", "ADDED u2 4"}},
		"deletion fails, replaced":           {"ADDED u1 1, reconcile, DELETED u1 2, ADDED u2 3, fail, reconcile", []string{"ADDED u1 1", "DELETED u1 2 was 1", "DELETED u1 2 was 1", "ADDED u2 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, objects := newScript(t)
				parse := func(step string) (watch.EventType, *unstructured.Object) {
					var kind watch.EventType
					var uid types.UID
					var resourceVersion string
					_, err := fmt.Sscan(step, &kind, &uid, &resourceVersion)
					require.NoError(t, err)
					obj := version(controllertest.Pod("web"), resourceVersion)
					obj.SetUID(uid)
					return kind, obj
				}
				emit := func(step string) {
					source.emit(parse(step))
					synctest.Wait()
				}
				key := types.NamespacedName{Namespace: "shop", Name: "web"}
				var got []string
				var handled func() error // before the handler returns
				tracker := controller.NewChangeTracker(objects, func(_ context.Context, change cache.Change[unstructured.Object]) error {
					got = append(got, changeText(change))
					assert.Empty(t, change.Object.GetLabels(), "the object is the handler's own")
					change.Object.SetLabels(map[string]string{"handled": "true"})
					return handled()
				})
				ctx, lag := context.WithCancel(t.Context())
				defer lag()
				go func() { _ = tracker.Enqueue(ctx, workqueue.New[types.NamespacedName](nil), slog.Default()) }()
				steps := strings.Split(tc.steps, ", ")
				for i := 0; i < len(steps); i++ {
					var want error
					handled = func() error { return want }
					switch steps[i] {
					case "lag":
						lag()
						continue
					case "reconcile":
					case "fail":
						want = errors.New("not now")
					case "terminal":
						want = controller.TerminalError(errors.New("never"))
					case "terminal once":
						want = controller.TerminalError(errors.New("never"))
						err := want
						handled = func() error { defer func() { err = nil }(); return err }
					case "panic":
						handled = func() error { panic("not now") }
					case "fail meanwhile":
						want = errors.New("not now")
						fallthrough
					case "meanwhile":
						i++
						var once sync.Once
						handled = func() error { once.Do(func() { emit(steps[i]) }); return want }
					default:
						if step, isEarly := strings.CutPrefix(steps[i], "early "); isEarly {
							kind, obj := parse(step)
							tracker.SetDeleted(key, cache.Change[unstructured.Object]{Type: kind, Object: obj})
						} else {
							emit(steps[i])
						}
						continue
					}
					reconcile := func() {
						assert.ErrorIs(t, tracker.Reconcile(t.Context(), key), want)
					}
					if steps[i] == "panic" {
						assert.Panics(t, reconcile)
					} else {
						reconcile()
					}
				}
				assert.Equal(t, tc.want, got)
				assert.Zero(t, tracker.Deletions(), "kept after they were handled")
			})
		})
	}
}

func TestOperator_LogsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, objects := newScript(t)
		log, lines := controllertest.Logger()
		go func() {
			_ = controller.NewChangeTracker(objects, nil).Enqueue(t.Context(), workqueue.New[types.NamespacedName](nil), log)
		}()
		source.sync()
		source <- dynamic.Change[unstructured.Object]{Type: dynamic.NotServed}
		synctest.Wait()
		assert.Equal(t, []string{`level=WARN msg="the server does not serve the resource: its objects are kept" resource=/api/v1/pods`}, lines())
	})
}

func changeText(change cache.Change[unstructured.Object]) string {
	text := fmt.Sprint(change.Type, " ", change.Object.GetUID(), " ", change.Object.GetResourceVersion())
	if change.Old != nil {
		text += " was " + change.Old.GetResourceVersion()
	}
	if change.FinalStateUnknown {
		text += " final state unknown"
	}
	return text
}
