package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anykind/anykind/controller/workqueue"
)

func ExampleQueue() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	queue := workqueue.New[string](nil)
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

func ExampleMaxOf() {
	// Each key is retried with backoff, and all keys together at most ten times a second after the first hundred.
	limiter := workqueue.MaxOf(
		workqueue.ExponentialBackoff(5*time.Millisecond, 1000*time.Second),
		workqueue.Bucket(100*time.Millisecond, 100),
	)
	queue := workqueue.New[string](&workqueue.Options{RateLimiter: limiter})
	queue.AddRateLimited("shop/web")
	key, _ := queue.Get(context.Background())
	fmt.Println(key, queue.NumRequeues(key))
	queue.Done(key)
	// Output: shop/web 1
}

func ExampleFastSlow() {
	limiter := workqueue.FastSlow(time.Second, time.Minute, 3)
	for failures := 1; failures <= 4; failures++ {
		fmt.Println(failures, limiter(failures) >= 30*time.Second)
	}
	// Output:
	// 1 false
	// 2 false
	// 3 false
	// 4 true
}

func ExampleBucket() {
	limiter := workqueue.Bucket(time.Minute, 2)
	for range 3 {
		fmt.Println(limiter(1).Round(time.Minute))
	}
	// Output:
	// 0s
	// 0s
	// 1m0s
}

func ExampleQueue_ShuttingDown() {
	queue := workqueue.New[string](nil)
	fmt.Println(queue.ShuttingDown())
	queue.ShutDown()
	fmt.Println(queue.ShuttingDown())
	// Output:
	// false
	// true
}
