package metrics

import "context"

// Leader returns a function that sets leader_election_master_status to 1 until its ctx ends. It returns nil. The function is for the
// leader: a controller of package manager, or a goroutine in the work of leaderelection.Run. Before, the gauge is 0.
//
//	m.AddController("leader metric", recorded.Leader("shop-operator"))
func (m *Metrics) Leader(lease string) func(ctx context.Context) error {
	status := m.leader(lease)
	status(0)
	return func(ctx context.Context) error {
		status(1)
		defer status(0)
		<-ctx.Done()
		return nil
	}
}
