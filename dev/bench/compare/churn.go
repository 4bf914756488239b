//go:build unix

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// replacedEvery is the number of changes of a pod until it is replaced by a new pod of the same name.
const replacedEvery = 5

// churnSeries are the caches for comparing memory after sync and after changes.
var churnSeries = []series{
	{"client-go, unstructured", "theirs", "cache-churn"},
	{"client-go, typed, protobuf", "theirs", "cache-churn-typed"},
	{"anykind, full", "ours", "cache-churn"},
	{"anykind, lazy", "ours", "cache-churn-lazy"},
	{"anykind, packed", "ours", "cache-churn-packed"},
}

// churnComparisons compares the RSS after changes with the RSS of informers, and with the RSS of the synced cache.
func churnComparisons(objects, changes int) []comparison {
	var all []comparison
	what := fmt.Sprintf("after %d changes among %d pods, of which every fifth is a replacement", changes, objects)
	dynamicInformer := churnSeries[0]
	typedInformer := churnSeries[1]
	for _, form := range []struct {
		suffix string
		series
	}{{"", churnSeries[2]}, {"-lazy", churnSeries[3]}, {"-packed", churnSeries[4]}} {
		churned := form.cost(changes, "churned-rss")
		all = append(all,
			comparison{"churn-rss" + form.suffix, "RSS of " + form.label + ", " + what, 0.65, churned, dynamicInformer.cost(changes, "churned-rss")},
			comparison{"churn-typed-rss" + form.suffix, "the same, against an informer of typed objects over protobuf", 1, churned, typedInformer.cost(changes, "churned-rss")},
			comparison{"churn-growth" + form.suffix, "the same, against its own RSS when synced", 1.2, churned, form.cost(changes, "synced-rss")},
		)
	}
	return all
}

// churnRow is a line of the page: the memory of a synced cache and after changes, in MB, and the ratio after/synced.
type churnRow struct{ Label, RSS, Live, Room, Peak string }

// churnRows returns a row for each series.
func churnRows(changes int, kept *results) []churnRow {
	var rows []churnRow
	for _, s := range churnSeries {
		of := func(figure string) float64 { return kept.of(s.cost(changes, figure)) }
		growth := func(synced, churned float64) string {
			return fmt.Sprintf("%.1f → %.1f (%.2f)", synced/1e6, churned/1e6, churned/synced)
		}
		rows = append(rows, churnRow{
			s.label, growth(of("synced-rss"), of("churned-rss")), growth(of("synced-live"), of("churned-live")),
			growth(of("synced-spans")-of("synced-live"), of("churned-spans")-of("churned-live")), fmt.Sprintf("%.1f", of("churned-peak-rss")/1e6),
		})
	}
	return rows
}

// churnInEtcd returns a function that changes pods directly in etcd, in sequence, a thousand a second and each pod at most once a
// second. Every replacedEvery-th change of a pod, including its first, deletes the pod and creates a new pod.
func (s *server) churnInEtcd(ctx context.Context, namespace string, count, objects int) (func(ctx context.Context) error, error) {
	store, pods, err := openPods(ctx, namespace, objects)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		defer store.close()
		begin := time.Now()
		pause := max(pace, time.Second/time.Duration(objects))
		change := func(ctx context.Context, i int) error {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * pause)))
			pod := i % objects
			round := i / objects
			key := podKey(namespace, measure.PodName(pod))
			uid := fmt.Sprintf("%x-%d-%d", begin.UnixNano(), pod, round/replacedEvery)
			value, err := churned(pods[pod], i, types.UID(uid), time.Now())
			if err == nil && round%replacedEvery == 0 {
				err = store.remove(ctx, key)
			}
			if err == nil {
				err = store.put(ctx, key, value)
			}
			if err != nil {
				return fmt.Errorf("change %s: %w", measure.PodName(pod), err)
			}
			return nil
		}
		// Each worker has its own pods, so that their changes stay in order. The last call is made alone and has no pods.
		return s.each(ctx, workers+1, func(ctx context.Context, worker int) error {
			for i := range count {
				if i%objects%workers != worker {
					continue
				}
				if err := change(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}, nil
}

// churned returns a stored pod with that UID after a change of its status.
func churned(value []byte, sequence int, uid types.UID, at time.Time) ([]byte, error) {
	pod := &corev1.Pod{}
	if _, _, err := stored.Decode(value, nil, pod); err != nil {
		return nil, err
	}
	pod.UID = uid
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, measure.Sequence, strconv.Itoa(sequence))
	pod.Status.PodIP = fmt.Sprintf("10.%d.%d.%d", sequence>>16&0xff, sequence>>8&0xff, sequence&0xff)
	for i := range pod.Status.Conditions {
		pod.Status.Conditions[i].LastTransitionTime = metav1.Time{Time: at}
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.RestartCount = int32(sequence)
		status.ContainerID = fmt.Sprintf("containerd://%s-%d", uid, sequence) //nolint:gosec // far below 2^31
	}
	for i := range pod.ManagedFields {
		pod.ManagedFields[i].Time = &metav1.Time{Time: at}
	}
	pod.APIVersion = "v1"
	pod.Kind = "Pod"
	return runtime.Encode(stored, pod)
}
