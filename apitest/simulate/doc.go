// Package simulate tests a controller against everything that can happen to it: it runs the controller in a testing/synctest bubble,
// on an API server in memory, many times. Each time other things go wrong, and the same state must come about in the end.
//
//	simulate.Test(t, &simulate.Scenario{
//		Server: apitest.Options{Objects: definitions},
//		Run:    func(ctx context.Context, p *simulate.Process) error { return operate(ctx, p.Client) },
//		Steps:  []simulate.Step{{Name: "creates a Greeting", Do: createGreeting}, {Name: "deletes it", Do: deleteGreeting}},
//	}, nil)
//
// All that happens is chosen: when a request arrives at the server and when a watch event arrives at the controller, which key of the
// work queue a worker gets, which request fails and how, when the process crashes and when it is started again, when it loses its
// lease. A seed determines the choices, so that it repeats a run, request by request. See docs/SIMULATION.md.
//
// How a run is repeatable: whoever sends a request, receives an event or takes a key waits until the scheduler lets it go on, which
// lets one go on at a time, and the next one only when all goroutines of the bubble are blocked. What is chosen for a request depends on
// the seed and on which request it is, not on when it is made.
package simulate
