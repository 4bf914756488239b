package dynamic_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// ExampleHandle_ForEach labels all pods of an application, four at a time. Any other verb goes into the function as well.
func ExampleHandle_ForEach() {
	pods, closeAll := shop()
	defer closeAll()

	label := []byte(`{"metadata":{"labels":{"tier":"front"}}}`)
	err := pods.ForEach(context.Background(), &metav1.ListOptions{LabelSelector: "app=web"}, &dynamic.ForEachOptions{
		Workers:    4,
		OnProgress: func(p dynamic.ForEachProgress) { fmt.Printf("%d of %d\n", p.Done, p.Total) },
	}, func(ctx context.Context, in *dynamic.Resource, pod *unstructured.Object) error {
		_, err := in.Patch(ctx, pod.GetName(), types.MergePatchType, label, nil)
		return err
	})
	fmt.Println(err)
	// Output:
	// 1 of 2
	// 2 of 2
	// <nil>
}

// ExampleObjectError deletes pods unless they have been replaced in the meantime, and prints which failed.
func ExampleObjectError() {
	pods, closeAll := shop()
	defer closeAll()

	err := pods.ForEach(context.Background(), nil, nil, func(ctx context.Context, in *dynamic.Resource, pod *unstructured.Object) error {
		if pod.GetName() == "db" {
			return errors.New("protected")
		}
		_, err := in.Delete(ctx, pod.GetName(), &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(pod.GetUID())}})
		return err
	})
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			var object *dynamic.ObjectError
			if !errors.As(err, &object) {
				log.Fatal(err) // of the list
			}
			fmt.Println(object.Key.Name, object.Err)
		}
	}
	// Output: db protected
}
