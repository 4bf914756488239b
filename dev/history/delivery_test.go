package history

import "testing"

func TestLastingDelivered_Cases(t *testing.T) {
	assertProperty(t, lastingDelivered, []testCase{
		{"the last states", `
			etcd put a 5; etcd put a 6; etcd put b 7; etcd delete b 8; etcd put c 9; changes Added a#1 6;
			snapshot Read a#1 6; settled 8`},
		{"after a restore", `
			etcd put a 5; etcd put b 6; changes Added a#1 5; changes Added b#2 6; etcd restore; etcd put a 5;
			changes DeletedUnknown b#2 6; settled 5`},
	}, []testCase{
		{"a change is missing", `etcd put a 5; etcd put a 6; changes Added a#1 5; settled 6`},
		{"an object is missing", `etcd put a 5; operator Added b#1 4; operator Deleted b#1 6; settled 6`},
		{"a deletion is missing", `etcd put a 5; etcd delete a 6; follow Added a#1 5; settled 6`},
		{"a cache keeps a deleted object", `etcd put a 5; etcd delete a 6; snapshot Read a#1 5; settled 6`},
	})
}

func TestListsConsistent_Cases(t *testing.T) {
	assertProperty(t, listsConsistent, []testCase{
		{"initial list and relist", `
			etcd put a 5; etcd put b 6; etcd put a 7; etcd delete b 8; follow Added a#1 5; follow Added b#2 6;
			follow Progress 6; follow Synced; follow Relist; follow Modified a#1 7; follow DeletedUnknown b#2 6;
			follow Progress 8`},
		{"a restore to an older state", `
			etcd put a 5; etcd put a 6; follow Added a#1 6; follow Progress 6; etcd restore; etcd put a 5; etcd put b 6;
			etcd put b 7; follow Relist; follow Modified a#1 5; follow Added b#2 7; follow Progress 7`},
	}, []testCase{
		{"a deleted object stays", `
			etcd put a 5; etcd delete a 6; follow Added a#1 5; follow Progress 5; follow Relist; follow Progress 7;
			follow Progress 7`},
		{"states of two revisions", `etcd put a 5; etcd put b 6; etcd put a 7; follow Added a#1 7; follow Added b#2 6; follow Progress 6`},
	})
}

func TestProgressBehind_Cases(t *testing.T) {
	assertProperty(t, progressBehind, []testCase{
		{"events and bookmarks", `
			etcd put a 5; follow Progress 4; etcd put c 6; follow Added a#1 5; follow Progress 5; follow Added c#1 6;
			follow Progress 9`},
	}, []testCase{
		{"a bookmark overtakes an event", `etcd put a 5; follow Progress 4; follow Progress 5; follow Added a#1 5; follow Progress 5`},
		{"progress goes back", `follow Progress 4; follow Progress 6; follow Progress 5`},
	})
}

func TestSyncedComplete_Cases(t *testing.T) {
	assertProperty(t, syncedComplete, []testCase{
		{"all objects", `etcd put a 5; etcd put b 6; changes Relist; changes Added a#1 5; etcd put c 7; etcd delete b 8; changes Synced`},
	}, []testCase{
		{"an object of another namespace is missing", `etcd put a 5; etcd put b 6; changes Relist; changes Added a#1 5; changes Synced; changes Added b#2 6`},
	})
}
