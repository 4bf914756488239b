package simulate

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/unstructured"
)

const (
	rivalIdentity = "another-candidate"
	rivalTerm     = 40 * time.Second
	defaultTerm   = 15 * time.Second // of a Lease without a duration
)

// loseLease fails the process's renewals until the lease has expired. If the program has one process, a rival candidate then holds the
// lease for rivalTerm.
func (p *process) loseLease(about request) {
	r := p.run
	lease := r.leaseOf(about)
	term := defaultTerm
	if seconds, found, _ := unstructured.Get[int64](lease, "spec", "leaseDurationSeconds"); found {
		term = time.Duration(seconds) * time.Second
	}
	renewed := time.Now()
	p.leaseLostUntil = renewed.Add(term + 2*time.Second)
	r.disturb(term + 2*time.Second + rivalTerm + 2*term)
	if r.scenario.processes() > 1 {
		return
	}
	go func() {
		number := strconv.Itoa(r.scheduler.number("rival"))
		if r.scheduler.wait(r.ctx, "rival #"+number, term+time.Second) != nil || r.setHolder(about, rivalIdentity) != nil {
			return
		}
		r.trace.add("rival", "takes the lease "+about.object()+", which has expired")
		if r.scheduler.wait(r.ctx, "end of rival #"+number, rivalTerm) != nil {
			return
		}
		if r.setHolder(about, "") == nil {
			r.trace.add("rival", "releases the lease "+about.object())
		}
	}()
}

func (r *run) leaseOf(about request) *unstructured.Object {
	states := r.server.StatesOf(about.resource, about.namespace, about.name)
	if len(states) == 0 {
		return &unstructured.Object{Object: map[string]any{}}
	}
	return states[len(states)-1].Object
}

// setHolder writes the holder of a lease like a rival candidate.
func (r *run) setHolder(about request, identity string) error {
	leases, err := r.user.Resource(r.ctx, about.resource)
	if err != nil {
		return err
	}
	transitions, _, _ := unstructured.Get[int64](r.leaseOf(about), "spec", "leaseTransitions")
	patch := fmt.Sprintf(`{"spec":{"holderIdentity":%q,"leaseTransitions":%d,"renewTime":%q,"acquireTime":%q}}`, identity, transitions+1,
		time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	_, err = leases.Namespace(about.namespace).Patch(context.WithoutCancel(r.ctx), about.name, types.MergePatchType, []byte(patch), nil)
	return err
}

// holdLease records the process's identity in a lease.
func (p *process) holdLease(r request, lease *unstructured.Object) {
	if holder, _, _ := unstructured.Get[string](lease, "spec", "holderIdentity"); r.isWrite() && holder != "" {
		p.leases[objectID{r.resource, r.namespace, r.name}] = holder
	}
}

// leader returns the process that holds a lease, nil if there is none.
func (r *run) leader() *process {
	for number := range r.processes {
		p := r.currentProcess(number)
		for id, identity := range p.leases {
			lease := r.leaseOf(request{resource: id.resource, namespace: id.namespace, name: id.name})
			if holder, _, _ := unstructured.Get[string](lease, "spec", "holderIdentity"); holder == identity && !p.hasEnded() {
				return p
			}
		}
	}
	return nil
}

// checkLease fails the run if the process sent a write after a rival had acquired its lease.
func (p *process) checkLease(r request, key string, sent time.Time) {
	if !r.isWrite() || isIncidental(r.resource) {
		return
	}
	for id, identity := range p.leases {
		states := p.run.server.StatesOf(id.resource, id.namespace, id.name)
		if len(states) == 0 {
			continue
		}
		lease := states[len(states)-1].Object
		holder, _, _ := unstructured.Get[string](lease, "spec", "holderIdentity")
		text, _, _ := unstructured.Get[string](lease, "spec", "acquireTime")
		acquired, err := time.Parse(time.RFC3339Nano, text)
		if holder != identity && holder != "" && err == nil && sent.After(acquired) {
			p.run.fail("lease", fmt.Errorf("%s was sent after the lease %s had been lost to %q", key, id, holder))
		}
	}
}
