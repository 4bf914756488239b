package write_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/unstructured"
)

// TestWriter_EventsOfBothGroupsAsOnServer writes Events in one group and reads them in both.
func TestWriter_EventsOfBothGroupsAsOnServer(t *testing.T) {
	about := func(s *compare.Server) string {
		return `{apiVersion: v1, kind: Pod, name: web, namespace: ` + s.Namespace + `}`
	}
	events := map[string]string{
		"core plain":     `involvedObject: ABOUT, reason: Started, message: text, type: Normal`,
		"core empty":     `involvedObject: ABOUT`,
		"core all":       `involvedObject: ABOUT, reason: Started, message: text, type: Warning, source: {component: c, host: h}, firstTimestamp: "2024-01-02T03:04:05Z", lastTimestamp: "2024-01-02T03:04:06Z", count: 3, action: Act, related: {kind: Node, name: node-0}`,
		"core component": `involvedObject: ABOUT, reason: Started, reportingComponent: example.com/c, reportingInstance: c-0, eventTime: "2024-01-02T03:04:05.000006Z", action: Act, type: Normal`,
		"new plain":      `regarding: ABOUT, reason: Started, note: text, type: Normal, reportingController: example.com/c, reportingInstance: c-0, action: Act, eventTime: "2024-01-02T03:04:05.000006Z"`,
		"new series":     `regarding: ABOUT, reason: Started, type: Normal, reportingController: example.com/c, reportingInstance: c-0, action: Act, eventTime: "2024-01-02T03:04:05.000006Z", series: {count: 2, lastObservedTime: "2024-01-02T03:04:05.000006Z"}`,
	}
	compare.Responses(t, nil, 50, func(t *testing.T, s *compare.Server) map[string]string {
		all := map[string]string{}
		handles := handlesOf(t, s, map[string]schema.GroupVersionKind{
			"core": {Version: "v1", Kind: "Event"},
			"new":  {Group: "events.k8s.io", Version: "v1", Kind: "Event"},
		})
		page, err := handles["core"].ListPage(t.Context(), nil)
		require.NoError(t, err)
		start := page.ResourceVersion
		const last = "new-series"
		for _, name := range slices.Sorted(maps.Keys(events)) {
			fields := events[name]
			record := func(what string, obj *unstructured.Object, err error) {
				all[name+" "+what] = s.Outcome(withoutIdentity(obj), err)
			}
			group := strings.Fields(name)[0]
			other, apiVersion := "core", "events.k8s.io/v1"
			if group == "core" {
				other, apiVersion = "new", "v1"
			}
			own := strings.ReplaceAll(name, " ", "-")
			given := s.Object(t, fmt.Sprintf(`{apiVersion: %s, kind: Event, metadata: {name: %s}, %s}`, apiVersion, own, strings.ReplaceAll(fields, "ABOUT", about(s))))
			created, err := handles[group].Create(t.Context(), given, nil)
			record("created", created, err)
			read := func(what string) {
				for group, handle := range handles {
					obj, err := handle.Get(t.Context(), own, nil)
					record(what+" in "+group, obj, err)
				}
			}
			read("created")
			patched, err := handles[other].Patch(t.Context(), own, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), nil)
			record("patched in "+other, patched, err)
			applied, err := handles[group].Apply(t.Context(), s.Object(t, fmt.Sprintf(`{apiVersion: %s, kind: Event, metadata: {name: %s, labels: {c: d}}}`, apiVersion, own)), &metav1.ApplyOptions{FieldManager: "m"})
			record("applied", applied, err)
			read("applied")
		}
		for group, handle := range handles {
			for _, selector := range []string{"", "reason=Started", "involvedObject.name=web", "regarding.name=web", "reportingComponent=example.com/c", "reportingController=example.com/c"} {
				var names []string
				for event, err := range handle.List(t.Context(), &metav1.ListOptions{FieldSelector: selector}) {
					if err != nil {
						names = append(names, s.Outcome(nil, err))
						break
					}
					names = append(names, event.GetAPIVersion()+" "+event.GetName())
				}
				slices.Sort(names)
				all[fmt.Sprintf("list in %s by %q", group, selector)] = fmt.Sprint(names)
			}
		}
		for group, handle := range handles {
			var seen []string
			for event, err := range handle.Watch(t.Context(), &metav1.ListOptions{ResourceVersion: start, FieldSelector: "reason=Started"}) {
				require.NoError(t, err)
				seen = append(seen, string(event.Type)+" "+event.Object.GetAPIVersion()+" "+event.Object.GetName())
				if event.Object.GetName() == last {
					break
				}
			}
			all["watch in "+group] = fmt.Sprint(seen)
		}
		_, err = handles["new"].Delete(t.Context(), "core-plain", nil)
		record := s.Outcome(nil, err)
		_, err = handles["core"].Get(t.Context(), "core-plain", nil)
		all["deleted"] = record + s.Outcome(nil, err)
		return all
	})
}
