// Package simulate tests a controller under faults: it runs the controller many times, each time in a testing/synctest bubble, on an
// API server in memory, with other faults. The final state must always be the same.
//
//	simulate.Test(t, &simulate.Scenario{
//		Server: apitest.Options{Objects: definitions},
//		Run:    func(ctx context.Context, p *simulate.Process) error { return operate(ctx, p.Client) },
//		Steps:  []simulate.Step{{Name: "creates a Greeting", Do: createGreeting}, {Name: "deletes it", Do: deleteGreeting}},
//	}, nil)
//
// A seed determines when a request arrives at the server and when a watch event arrives at the controller, which key of the work
// queue a worker gets, which requests fail and how, when the process crashes and is started again, and when it loses its lease. It
// repeats a run, request by request. See docs/SIMULATION.md.
//
// For that, a goroutine that sends a request, receives an event or takes a key waits for the scheduler, which releases one at a time,
// and the next one only when all goroutines of the bubble are blocked. The fault of a request depends on the seed and on which request
// it is, not on when it is made.
package simulate
