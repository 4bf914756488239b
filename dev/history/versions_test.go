package history

import "testing"

func TestVersionsForward_Cases(t *testing.T) {
	assertProperty(t, versionsForward, []testCase{
		{"each version once, in order", `
			etcd put a 5; etcd put a 7; follow Added a#1 5; follow Modified a#1 7; reader Read a#1 5; reader Read a#1 5;
			reader Read a#1 7`},
		{"an older state after a restore, once", `
			etcd put a 5; etcd put a 7; follow Added a#1 7; etcd restore; etcd put a 5; follow Modified a#1 5;
			reader Read a#1 5`},
	}, []testCase{
		{"an older state after a relist", `follow Added a#1 7; follow Relist; follow Modified a#1 5`},
		{"an older state than that of a deletion", `follow Added a#1 5; follow Deleted a#1 9; follow Added a#2 7`},
		{"a change twice", `changes Added a#1 5; changes Modified a#1 5`},
		{"a cache that goes back", `reader Read a#1 7; reader Read a#1 5`},
		{"a second return after a single restore", `follow Added a#1 7; etcd restore; follow Modified a#1 5; follow Modified a#1 6; follow Modified a#1 4`},
	})
}

func TestNoReturn_Cases(t *testing.T) {
	assertProperty(t, noReturn, []testCase{
		{"created again", `
			follow Added a#1 5; follow Deleted a#1 6; follow Added a#2 8; reader Read a#1 5; reader Read a;
			reader Read a#2 8`},
		{"returned by a restore", `
			etcd put a 5; etcd delete a 6; follow Added a#1 5; follow Deleted a#1 6; etcd restore; etcd put a 5;
			follow Added a#1 5`},
	}, []testCase{
		{"deleted by a broken list", `follow Added a#1 5; follow DeletedUnknown a#1 5; follow Added a#1 6`},
		{"missing in between", `reader Read a#1 5; reader Read a; reader Read a#1 6`},
	})
}

func TestChangesPaired_Cases(t *testing.T) {
	assertProperty(t, changesPaired, []testCase{
		{"replaced", `
			operator Added a#1 5; operator Modified a#1 6; operator DeletedUnknown a#1 6; operator Added a#2 9;
			operator Deleted a#2 10`},
		{"a call that failed", `operator Added a#1 5; operator Added a#1 5`},
	}, []testCase{
		{"replaced as a modification", `follow Added a#1 5; follow Modified a#2 9`},
		{"no Deleted", `operator Added a#1 5; operator Added a#2 9`},
		{"no Added", `changes Deleted a#1 9`},
	})
}
