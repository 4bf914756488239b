// Package simulate tests a controller under faults. It runs the controller many times on an API server in memory, each time with
// different faults and in its own testing/synctest bubble. The final state must always be the same.
//
//	simulate.Test(t, &simulate.Scenario{
//		Server: apitest.Options{Objects: definitions},
//		Run:    func(ctx context.Context, p *simulate.Process) error { return operate(ctx, p.Client) },
//		Steps:  []simulate.Step{{Name: "creates a Greeting", Do: createGreeting}, {Name: "deletes it", Do: deleteGreeting}},
//	}, nil)
//
// A seed determines the arrival times of requests at the server and of watch events at the controller, the order in which workers
// get keys from the work queue, the faults of requests, the crashes and restarts of the process, the lag of its API server, and the
// losses of its lease. A seed repeats a run, request by request. [Day] plays a day with the operations of a cluster. See
// docs/SIMULATION.md.
//
// To be repeatable, every goroutine waits for the scheduler before it sends a request, receives an event or takes a key. The
// scheduler releases one goroutine at a time, and only while all goroutines of the bubble are blocked. The fault of a request
// depends on the seed and the request's key, not on the time.
package simulate
