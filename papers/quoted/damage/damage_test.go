package damage
