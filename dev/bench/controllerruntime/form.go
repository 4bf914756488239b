//go:build unix

package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// form is the representation of the pods.
type form struct {
	name   string
	suffix string // of the names of cache tasks; their usual form is unstructured
	// pod returns an empty pod.
	pod func() client.Object
}

var forms = []form{
	{"unstructured", "", func() client.Object {
		pod := &unstructuredv1.Unstructured{}
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		return pod
	}},
	{"metadata", "-metadata", func() client.Object {
		pod := &metav1.PartialObjectMetadata{}
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		return pod
	}},
	{"typed", "-typed", func() client.Object { return &corev1.Pod{} }},
}
