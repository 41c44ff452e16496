"""The memory primitives and their sequence forms: pure functions on arrays.

One letter names one axis, in every annotation, einsum and comment:

  ======  ==============================  ======  ==============================
  letter  axis                            letter  axis
  ======  ==============================  ======  ==============================
  b       batch                           k       key and query width of a head
  s       sequence position               v       value width of a head
  t       position in a second sequence   d       model width
  h       heads, tapes                    c       position inside a chunk
  n       memory slots, tape cells        z       chunks of a sequence
  r       read heads of a DNC             y       classes, vocabulary
  ======  ==============================  ======  ==============================

Sequences are `b s h k`, memories `b h v k`: the paper's M in R^(v x k), so that
reading is the matrix product M q. Masks are True where a token is real.
"""
