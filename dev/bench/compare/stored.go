//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// stored decodes and encodes objects in the API server's storage format.
var stored = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// pace is the usual interval between changes: a thousand a second.
const pace = time.Millisecond

// changeInEtcd returns a function that changes pods at a pace, directly in etcd. The stored pods are as after patchPods.
func (s *server) changeInEtcd(ctx context.Context, namespace string, count, objects int, pace time.Duration) (func(ctx context.Context) error, error) {
	store, pods, err := openPods(ctx, namespace, objects)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		defer store.close()
		begin := time.Now()
		return s.each(ctx, count, func(ctx context.Context, i int) error {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * pace)))
			value, err := changed(pods[i%objects], time.Now())
			if err != nil {
				return fmt.Errorf("change %s: %w", measure.PodName(i%objects), err)
			}
			return store.put(ctx, podKey(namespace, measure.PodName(i%objects)), value)
		})
	}, nil
}

// openPods returns the store and the pods of a namespace in it. The store has no open connection.
func openPods(ctx context.Context, namespace string, objects int) (store *etcd, pods [][]byte, err error) {
	store, err = openEtcd(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer store.close()
	pods, err = store.values(ctx, podKey(namespace, ""))
	if err == nil && len(pods) != objects {
		err = fmt.Errorf("etcd has %d pods in %s, want %d", len(pods), namespace, objects)
	}
	return store, pods, err
}

// podKey returns the key of a pod in etcd.
func podKey(namespace, name string) string { return "/registry/pods/" + namespace + "/" + name }

// changed returns a stored pod with the annotation of a change.
func changed(value []byte, at time.Time) ([]byte, error) {
	pod := &corev1.Pod{}
	if _, _, err := stored.Decode(value, nil, pod); err != nil {
		return nil, err
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, measure.Changed, strconv.FormatInt(at.UnixNano(), 10))
	for i := range pod.ManagedFields {
		if entry := &pod.ManagedFields[i]; entry.Subresource == "" {
			entry.Time = &metav1.Time{Time: at}
			entry.FieldsV1.SetRawBytes(ownsChange(entry.FieldsV1.GetRawBytes()))
		}
	}
	pod.APIVersion = "v1"
	pod.Kind = "Pod"
	return runtime.Encode(stored, pod)
}

// ownsChange adds the annotation to the sorted fields owned by the pod's manager.
func ownsChange(fields []byte) []byte {
	const before, change = `{"f:metadata":{`, `"f:annotations":{".":{},"f:` + measure.Changed + `":{}},`
	if bytes.Contains(fields, []byte(change)) {
		return fields
	}
	return bytes.Replace(fields, []byte(before), []byte(before+change), 1)
}
