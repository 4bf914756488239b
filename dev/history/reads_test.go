package history

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOwnWritesRead_Cases(t *testing.T) {
	assertProperty(t, ownWritesRead, []testCase{
		{"written and newer states", `
			etcd put a 5; etcd put a 6; etcd delete a 7; writer Wrote a#1 5; writer Awaited a#1; writer Read a#1 6;
			writer Read a; writer Wrote a#1 @6; writer Read a#1 6; writer Awaited a#1; writer Read a; writer Read a#2 9`},
	}, []testCase{
		{"the old state", `etcd put a 5; writer Wrote a#1 5; writer Awaited a#1; writer Read a#1 4`},
		{"not there", `etcd put a 5; writer Wrote a#1 5; writer Awaited a#1; writer Read a`},
		{"a deleted object", `etcd put a 5; etcd delete a 7; writer Wrote a#1 @5; writer Awaited a#1; writer Read a#1 5`},
	})
}

func TestWaitsForward_Cases(t *testing.T) {
	assertProperty(t, waitsForward, []testCase{
		{"newer states, and a deletion", `
			etcd put a 5; etcd put a 6; etcd delete a 7; wait Evaluated a#1 5; wait Evaluated a#1 5; wait Returned a#1 6;
			wait Returned a`},
	}, []testCase{
		{"an older state in a call", `wait Evaluated a#1 6; wait Evaluated a#1 5`},
		{"an older result in a later call", `wait Returned a#1 6; wait Returned a#1 5`},
		{"an object that was not deleted", `etcd put a 5; wait Evaluated a#1 5; wait Returned a`},
	})
}

func TestReconcilesExclusive_Cases(t *testing.T) {
	assertProperty(t, reconcilesExclusive, []testCase{
		{"one after the other, and different keys", `1-5 process Reconciled a; 5-8 process2 Reconciled a; 2-9 process Reconciled b`},
	}, []testCase{
		{"in two processes", `1-5 process Reconciled a; 4-8 process2 Reconciled a`},
		{"within a long one", `2-3 process Reconciled a; 4-5 process2 Reconciled b; 1-9 process Reconciled a`},
	})
}

func TestLeadersExclusive_Cases(t *testing.T) {
	assertProperty(t, leadersExclusive, []testCase{
		{"one after the other", `1-9 process Led lease 1; 2-3 process2 Led lease 2; process2 Led lease 2`},
	}, []testCase{
		{"a leader writes after its successor", `process Led lease 1; process2 Led lease 2; process Led lease 1`},
	})
}

func TestRequestsLinearizable_Cases(t *testing.T) {
	assertProperty(t, requestsLinearizable, []testCase{
		{"requests one after the other", `
			etcd put a 5; etcd put a 6; etcd delete a 7; client Get a; client Create a 5; client2 Create a rejected;
			client Update a 6 @5; client2 Update a @5 rejected; client Get a 6; client Delete a @6; client2 Get a;
			client2 Delete a @6 rejected`},
		{"concurrent reads of both states", `
			etcd put a 5; etcd put a 6; client Create a 5; 10-20 client Update a 6 @5; 12-13 client2 Get a 5;
			14-15 client3 Get a 6`},
		{"an unknown update takes effect later, an unknown deletion never", `
			etcd put a 5; etcd put a 6; client Create a 5; client Update a @5 unknown; client2 Delete a @5 unknown;
			client2 Get a 5; client2 Get a 6`},
		{"a restore", `
			etcd put a 5; etcd put a 6; client Create a 5; client Update a 6 @5; 10-11 client Get a 6; 12-12 etcd restore;
			etcd put b 6`},
	}, []testCase{
		{"a stale read", `etcd put a 5; etcd put a 6; client Create a 5; client Update a 6 @5; client2 Get a 5`},
		{"an update of an outdated revision", `client Create a 5; client Update a 6 @5; client2 Update a 7 @5`},
		{"a conflict without a write", `client Create a 5; client Update a @5 rejected`},
		{"an object returns", `etcd put a 5; etcd delete a 6; client Create a 5; client Delete a @5; client2 Get a 5`},
	})
}

func TestRequestsLinearizable_AfterRestore(t *testing.T) {
	h := parse(t, `etcd put a 5; client Create a 5; etcd restore; etcd put a 4; client Get a 4`)
	h.Epochs[1].Gaps = []Gap{{0, 4}}
	assert.Empty(t, h.Check())
}

func TestRequestsLinearizable_UnrecordedRevisions(t *testing.T) {
	h := parse(t, `etcd put a 5; client Create a 5; client Delete a @5; client Create a 7; etcd put a 7`)
	h.Epochs[0].Gaps = []Gap{{0, 4}, {6, 6}}
	assert.Len(t, h.Check(), 1, "without a deletion")
	h.Epochs[0].Gaps[1] = Gap{5, 7}
	assert.Empty(t, h.Check())
}
