package history

// Event returns an event of a history that is not etcd's own, such as the history of a scripted server. created is 0 for a deletion.
func (r *Recorder) Event(key string, revision, created int64) Event {
	return Event{Key: r.intern(key), Revision: revision, Created: created, At: r.Now()}
}
