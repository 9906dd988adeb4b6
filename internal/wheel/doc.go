// Package wheel keeps deadlines in order: a hierarchical timing wheel in nanoseconds. It knows no clock; times are numbers
// that its caller gives, from 0 to math.MaxInt64. A Node is a deadline, a field of whatever waits for it; a Wheel holds the
// armed ones. Arming and disarming are O(1) and allocate nothing: most deadlines of a server never expire.
//
// # How
//
// A deadline is read as eleven groups of six bits, and so is the time reached. A node is kept on the level of the highest
// group in which the two differ, in the slot that this group of its deadline names:
//
//	                  group:   10   ...   3    2    1    0
//	          time reached      0   ...   0    5   17   40
//	  deadline of a node        0   ...   0    5   20    9
//	                                           =    ^ differs: level 1, slot 20
//
//	level 1   one slot 64 ns     . . . 17 . . [20] . . .  63
//	                                            | time reached enters slot 20
//	                                            v   (a cascade)
//	level 0   one slot 1 ns      0 . . . [9] . . . . . .  63
//
// A slot on a lower level is always before one on a higher, and within a level they are in order, so the first bit of the
// first bitmap is the next one due. As time gets into a slot its nodes come down, where a finer group decides; on level 0
// all nodes of a slot have the same deadline. There is no tick: time jumps from one slot that is not empty to the next.
//
// # Order
//
// A loop of Pops, until one returns nil, returns nodes in order of deadline, equal deadlines in the order in which they were
// armed, and never one before its time. What belongs to a loop is settled when it begins. A node that is armed for a time for
// which Pop was asked before is late, and belongs to the next loop, which sorts its late nodes. So a caller may stop at a bound
// and go on later: what is due comes at last, however many nodes are armed for the past meanwhile.
//
// The scheme is that of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 7, with the choice of
// level by the highest bit that differs as in tokio's runtime/time/wheel.
package wheel
