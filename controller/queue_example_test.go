package controller_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anykind/anykind/controller"
)

func ExampleQueue() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	queue := controller.NewQueue[string](nil)
	queue.Add("shop/web")
	queue.Add("shop/db")
	queue.Add("shop/web") // waits already

	reconcile := func(key string) error {
		if key == "shop/web" && queue.NumRequeues(key) < 2 {
			return errors.New("not yet")
		}
		return nil
	}
	for range 4 {
		key, ok := queue.Get(ctx)
		if !ok {
			return
		}
		if err := reconcile(key); err != nil {
			fmt.Println(key, err)
			queue.AddRateLimited(key)
		} else {
			fmt.Println(key, "done")
			queue.Forget(key)
		}
		queue.Done(key)
	}
	queue.ShutDown()
	// Output:
	// shop/web not yet
	// shop/db done
	// shop/web not yet
	// shop/web done
}
