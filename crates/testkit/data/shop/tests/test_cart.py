import unittest

from shop.cart import Cart


class CartTest(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self):
        self.assertEqual(Cart().total(), 0)

    def test_every_piece_is_paid(self):
        cart = Cart()
        cart.add("mug", 850, quantity=3)
        cart.add("poster", 1200)
        self.assertEqual(cart.total(), 3750)

    def test_a_discount_is_taken_from_the_whole(self):
        cart = Cart()
        cart.add("mug", 999, quantity=2)
        self.assertEqual(cart.total(discount_percent=10), 1798)

    def test_no_pieces_cannot_be_added(self):
        with self.assertRaises(ValueError):
            Cart().add("mug", 850, quantity=0)


if __name__ == "__main__":
    unittest.main()
